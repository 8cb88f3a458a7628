import { cleanText, firstCodePoints, limits, unsupported } from '@iris/protocol';

/** @throws RequestError `unsupported` when nothing is left of it, or it is too long */
export function nameOf(given: string): string {
  const name = cleanText(given).trim();
  if (name === '') throw unsupported('name: empty');
  if (firstCodePoints(name, limits.name_code_points) !== name) throw unsupported(`name: more than ${limits.name_code_points} characters`);
  return name;
}
