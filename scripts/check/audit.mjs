/**
 * What `npm audit --json` said: faults for what is known to be gravely dangerous and mended elsewhere; or a note that says why nothing is known. A
 * registry that cannot be asked, or that keeps no such list, is no fault of the code.
 */
export function auditOf(stdout) {
  let said;
  try {
    said = JSON.parse(stdout);
  } catch {
    said = {};
  }
  const { vulnerabilities, message, statusCode, error } = said ?? {};
  if (typeof vulnerabilities !== 'object' || vulnerabilities === null) {
    const why = statusCode === undefined ? (message ?? error?.summary ?? 'it did not answer') : `it answered ${statusCode}`;
    return { faults: [], note: `npm audit: the registry could not be asked (${String(why).split('\n')[0]}); nothing is known` };
  }
  const grave = Object.values(vulnerabilities).filter(({ severity }) => severity === 'high' || severity === 'critical');
  return { faults: grave.map(({ name, severity, range }) => `${name} ${range}: ${severity}, see npm audit`), note: undefined };
}
