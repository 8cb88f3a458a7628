import { limits } from '@iris/protocol';

/** Characters that control, hide, or turn the direction of what is around them. */
const unseen = /[\p{Cc}\p{Cf}\u2028\u2029]/gu;
const reserved = /[<>:"|?*]/g;
/** Names that Windows gives to devices, whatever comes behind the dot. */
const device = /^(con|prn|aux|nul|com\d|lpt\d)(\..*)?$/i;

const bytesOf = (text: string): number => Buffer.byteLength(text);

/**
 * A file's name as it is kept: the last part of whatever path it was given as, with nothing in it that a screen does not show or a disk does
 * not take, at most 255 bytes, its ending kept.
 */
export function keptFilename(given: string | undefined, kind: string): string {
  const last = (given ?? '').split(/[/\\]/).at(-1)!;
  const plain = last
    .replace(unseen, '')
    .replace(reserved, '_')
    .trim()
    .replace(/^[. ]+|[. ]+$/g, '');
  if (plain === '') return kind;
  const safe = device.test(plain) ? `_${plain}` : plain;
  if (bytesOf(safe) <= limits.filename_bytes) return safe;
  const dot = safe.lastIndexOf('.');
  const ending = dot > 0 && bytesOf(safe.slice(dot)) <= 32 ? safe.slice(dot) : '';
  let stem = '';
  let room = limits.filename_bytes - bytesOf(ending);
  for (const character of safe.slice(0, ending === '' ? safe.length : dot)) {
    room -= bytesOf(character);
    if (room < 0) break;
    stem += character;
  }
  return stem + ending;
}
