import { firstCodePoints, limits, unsupported } from '@iris/protocol';

/** Turn the text around them, invisibly: they have no place in a name. The marks that Arabic, Hebrew and emoji need stay. */
const directional = /[\u202a-\u202e\u2066-\u2069]/g;
const controls = /[\p{Cc}\u2028\u2029]+/gu;
/** The blank Braille pattern is no white space to Unicode, but to everyone who looks. */
const invisible = /^[\p{White_Space}\p{Default_Ignorable_Code_Point}\p{Cf}\u2800]*$/u;

/**
 * A channel's or thread's name as it is kept: trimmed, on one line, with something to see in it.
 * @throws RequestError `unsupported` when nothing is left of it, or it is too long
 */
export function keptName(name: string): string {
  const kept = name.replace(directional, '').replace(controls, ' ').trim();
  if (invisible.test(kept)) throw unsupported('name: must not be blank');
  if (firstCodePoints(kept, limits.name_code_points) !== kept)
    throw unsupported(`name: must be at most ${limits.name_code_points} characters`);
  return kept;
}

/** The same for an agent's name, which is made to fit rather than refused. */
export function fittedName(name: string): string {
  return keptName(firstCodePoints(name.replace(directional, '').replace(controls, ' ').trim(), limits.name_code_points));
}
