import type { Outcome, Result } from './run.js';

const words: Record<Outcome, string> = {
  pass: 'pass',
  fail: 'FAIL',
  later: 'later',
  needs: 'needs',
  outside: 'not checkable',
  unchecked: 'UNCHECKED',
};

/** One line a rule. `needs` says in its evidence what of; `later` why the rule does not hold yet. */
export function tableOf(results: readonly Result[]): string {
  const line = ({ rule, outcome, later, evidence }: Result) => {
    const note = later && outcome === 'pass' ? '(marked later) ' : outcome === 'outside' ? 'from outside: ' : '';
    return `${rule.padEnd(6)} ${words[outcome].padEnd(13)} ${note}${evidence}`.trimEnd();
  };
  return results.map(line).join('\n');
}

export function summaryOf(results: readonly Result[]): string {
  const count = (outcome: Outcome) => results.filter((one) => one.outcome === outcome).length;
  const parts: [Outcome, string][] = [
    ['pass', 'pass'],
    ['fail', 'fail'],
    ['later', 'not built yet'],
    ['needs', 'need more than this run was given'],
    ['outside', 'cannot be seen from outside'],
    ['unchecked', 'are not checked by anything'],
  ];
  return `${results.length} rules: ${parts
    .filter(([outcome]) => count(outcome) > 0 || outcome === 'fail')
    .map(([outcome, text]) => `${count(outcome)} ${text}`)
    .join(', ')}`;
}

/** Whether the gateway is what SPEC.md says, as far as it was looked at. */
export const holds = (results: readonly Result[]): boolean =>
  results.every(({ outcome }) => outcome !== 'fail' && outcome !== 'unchecked') && results.some(({ outcome }) => outcome === 'pass');
