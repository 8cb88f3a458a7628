const masks: readonly ((x: number, y: number) => boolean)[] = [
  (x, y) => (x + y) % 2 === 0,
  (_, y) => y % 2 === 0,
  (x) => x % 3 === 0,
  (x, y) => (x + y) % 3 === 0,
  (x, y) => (Math.floor(x / 3) + Math.floor(y / 2)) % 2 === 0,
  (x, y) => ((x * y) % 2) + ((x * y) % 3) === 0,
  (x, y) => (((x * y) % 2) + ((x * y) % 3)) % 2 === 0,
  (x, y) => (((x + y) % 2) + ((x * y) % 3)) % 2 === 0,
];
/** Light in the upper and the lower half of a letter. */
const halves: Readonly<Record<string, readonly [boolean, boolean]>> = {
  '█': [true, true],
  '▀': [true, false],
  '▄': [false, true],
  ' ': [false, false],
};

/**
 * What a phone reads from a code that stands in half blocks in a terminal: undamaged, in bytes, of a version from 2 to 5 that holds its data in one
 * block. By ISO/IEC 18004, and by nothing of what drew it.
 */
export function readQr(printed: string): string {
  const rows = printed.split('\n').filter((line) => /^[█▀▄ ]+$/.test(line) && /[█▀▄]/.test(line));
  const light = rows.flatMap((row) => [0, 1].map((half) => [...row].map((letter) => halves[letter]![half]!)));
  const top = light.findIndex((row) => row.some((one) => !one));
  const left = light[top]!.indexOf(false);
  const dark = (x: number, y: number): boolean => light[top + y]?.[left + x] === false;
  // Two finders begin and end the first line.
  const size = light[top]!.lastIndexOf(false) - left + 1;
  const version = (size - 17) / 4;
  if (![2, 3, 4, 5].includes(version)) throw new Error(`version ${version}`);
  const format = [0, 1, 2, 3, 4, 5]
    .map((y) => dark(8, y))
    .concat(dark(8, 7), dark(8, 8), dark(7, 8))
    .concat([5, 4, 3, 2, 1, 0].map((x) => dark(x, 8)));
  const mask = masks[((format.reduce((sum, bit, i) => sum | (Number(bit) << i), 0) ^ 0x5412) >> 10) & 7]!;
  const [near, far] = [size - 9, size - 5];
  const drawn = (x: number, y: number): boolean =>
    x === 6 ||
    y === 6 ||
    (x < 9 && (y < 9 || y >= size - 8)) ||
    (x >= size - 8 && y < 9) ||
    (x >= near && x <= far && y >= near && y <= far);
  const bits: boolean[] = [];
  for (let right = size - 1; right >= 1; right -= 2) {
    if (right === 6) right = 5;
    for (let step = 0; step < size; step++)
      for (const x of [right, right - 1]) {
        const y = ((right + 1) & 2) === 0 ? size - 1 - step : step;
        if (!drawn(x, y)) bits.push(dark(x, y) !== mask(x, y));
      }
  }
  const number = (at: number, length: number) => bits.slice(at, at + length).reduce((sum, bit) => sum * 2 + Number(bit), 0);
  if (number(0, 4) !== 0b0100) throw new Error('not in bytes');
  return Buffer.from(Array.from({ length: number(4, 8) }, (_, i) => number(12 + 8 * i, 8))).toString();
}
