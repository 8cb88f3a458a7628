/**
 * Messages larger than the broker takes in one, cut and put together again. All pieces of a message leave in one go on one
 * connection, so they arrive in order with nothing of the same sender between them, or some are lost and with them the message.
 */

/** One piece, and where it stands: `number` is the message's, rising per sender. */
export interface Piece {
  readonly sender: string;
  readonly number: number;
  readonly index: number;
  readonly count: number;
}

/** Views into `data`, each at most `max` bytes. */
export function cut(data: Uint8Array, max: number): Uint8Array[] {
  const pieces: Uint8Array[] = [];
  for (let at = 0; at < data.length; at += max) pieces.push(data.subarray(at, at + max));
  return pieces;
}

export const pieceText = ({ sender, number, index, count }: Piece): string => `${sender} ${number} ${index} ${count}`;

export function pieceOf(text: string): Piece {
  const [sender = '', number, index, count] = text.split(' ');
  return { sender, number: Number(number), index: Number(index), count: Number(count) };
}

/** Senders whose unfinished message is kept; more than there are edges and session instances in a busy second. */
const sendersMax = 32;

/** Puts pieces together, for one subscription. Returns the whole message with its last piece. */
export function assembler(): (piece: Piece, data: Uint8Array) => Uint8Array | undefined {
  const unfinished = new Map<string, { readonly number: number; readonly parts: Uint8Array[] }>();
  return ({ sender, number, index, count }, data) => {
    const open = unfinished.get(sender);
    const parts = index === 0 ? [] : open?.number === number && open.parts.length === index ? open.parts : undefined;
    unfinished.delete(sender);
    if (parts === undefined) return undefined;
    // Copied: the transport's buffer is gone by the next piece.
    parts.push(data.slice());
    if (parts.length === count) return Buffer.concat(parts);
    unfinished.set(sender, { number, parts });
    if (unfinished.size > sendersMax) unfinished.delete(unfinished.keys().next().value!);
    return undefined;
  };
}
