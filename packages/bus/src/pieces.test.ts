import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { assembler, cut, type Piece, pieceOf, pieceText } from './pieces.js';

const piecesOf = (sender: string, number: number, data: Uint8Array, max: number) => {
  const parts = cut(data, max);
  return parts.map((part, index) => ({ piece: { sender, number, index, count: parts.length } satisfies Piece, part }));
};

describe('pieces of large messages', () => {
  test('what was cut comes together again, whoever else sends meanwhile', () => {
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ minLength: 1, maxLength: 200 }), { minLength: 1, maxLength: 5 }),
        fc.integer({ min: 1, max: 50 }),
        (messages, max) => {
          const assemble = assembler();
          const queues = messages.map((message, i) => piecesOf(`sender${i}`, i, message, max));
          const whole = new Map<number, Uint8Array>();
          while (queues.some((queue) => queue.length > 0)) {
            queues.forEach((queue, i) => {
              const next = queue.shift();
              if (next === undefined) return;
              const data = assemble(pieceOf(pieceText(next.piece)), next.part);
              if (data !== undefined) whole.set(i, data);
            });
          }
          messages.forEach((message, i) => void expect([...whole.get(i)!]).toEqual([...message]));
        },
      ),
    );
  });

  test('a message with a piece lost is lost, and the next one of that sender is not', () => {
    const data = new Uint8Array(100).map((_, i) => i);
    for (let lost = 0; lost < 10; lost++) {
      const assemble = assembler();
      const first = piecesOf('a', 1, data, 10).filter((_, index) => index !== lost);
      for (const { piece, part } of first) expect(assemble(piece, part)).toBeUndefined();
      const second = piecesOf('a', 2, data, 10).map(({ piece, part }) => assemble(piece, part));
      expect(second.slice(0, -1).every((whole) => whole === undefined)).toBe(true);
      expect([...second.at(-1)!]).toEqual([...data]);
    }
  });

  test('senders that never finish cost a bounded amount', () => {
    const assemble = assembler();
    const first = { sender: 's0', number: 1, index: 0, count: 2 };
    for (let i = 0; i < 100; i++) assemble({ ...first, sender: `s${i}` }, new Uint8Array(1));
    expect(assemble({ ...first, index: 1 }, new Uint8Array(1))).toBeUndefined();
    expect(assemble({ ...first, sender: 's99', index: 1 }, new Uint8Array(1))).toHaveLength(2);
  });
});
