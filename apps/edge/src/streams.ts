import { encode, type Lane } from '@iris/protocol';

/**
 * What one device has been given of running messages, whole: with cap `delta` the next piece is what a new text has beyond that, with
 * cap `reasoning` it is told of that too. Pieces are made of whole texts, so one that was left out costs nothing.
 */
export interface Streams {
  readonly delta: boolean;
  readonly reasoning: boolean;
  /** By frame type and message. The texts are shared by all who were given them. */
  readonly given: Map<string, string>;
}

/** A running message, whole so far, as the session sends it. */
interface Whole extends Lane {
  readonly type: Streamed;
  readonly payload: { readonly message_id: string; readonly text: string };
}
type Streamed = 'message.update' | 'reasoning.delta';
/** Pieces of one whole text, by what the device had. */
export type Pieces = (streams: Streams) => Uint8Array | undefined;

/** Running messages of one device, twice. What is forgotten comes whole the next time. */
const givenMax = 256;
const keyOf = (type: Streamed, message_id: string): string => `${type} ${message_id}`;

export const isStreamed = (type: string): type is Streamed => type === 'message.update' || type === 'reasoning.delta';

export const streamsOf = (caps: { readonly delta: boolean; readonly reasoning: boolean }): Streams | undefined =>
  caps.delta || caps.reasoning ? { delta: caps.delta, reasoning: caps.reasoning, given: new Map() } : undefined;

/** Who gets a frame of this type made for itself; the others share one, or, of reasoning, get none. */
export const isOwn = (streams: Streams | undefined, type: Streamed): boolean =>
  type === 'message.update' ? streams?.delta === true : streams?.reasoning === true;

/**
 * @param body of a `message.update`, or of a `reasoning.delta` that has everything from offset 0 on
 * @returns what each device is to be sent; undefined when it has it all
 */
export function piecesOf(body: Uint8Array): Pieces {
  const whole = JSON.parse(Buffer.from(body).toString()) as Whole;
  const { type, chat_id, thread_id, payload } = whole;
  const { message_id, text } = payload;
  const key = keyOf(type, message_id);
  // Most devices had the same.
  const made = new Map<string, Uint8Array>();
  return ({ given }) => {
    const had = given.get(key);
    if (had === undefined && given.size >= givenMax) given.delete(given.keys().next().value!);
    given.set(key, text);
    if (had === text) return undefined;
    // Both are well-formed, so what one has beyond the other is, too: no character is split.
    if (had === undefined || !text.startsWith(had)) return body;
    let piece = made.get(had);
    if (piece === undefined) {
      const more = { message_id, offset: had.length, text: text.slice(had.length) };
      const down = type === 'message.update' ? 'message.delta' : type;
      piece = encode({ type: down, chat_id, thread_id, payload: more } as Parameters<typeof encode>[0]);
      made.set(had, piece);
    }
    return piece;
  };
}

/** A durable frame that the device is given: a message begins with nothing, and is over with its end. */
export function follow(streams: Streams | undefined, type: string, message_id: string | undefined): void {
  if (streams === undefined || message_id === undefined) return;
  if (type === 'message.start') for (const one of ['message.update', 'reasoning.delta'] as const) begin(streams, one, message_id);
  else if (type === 'message.stop' || type === 'message')
    for (const one of ['message.update', 'reasoning.delta'] as const) streams.given.delete(keyOf(one, message_id));
}

function begin({ given }: Streams, type: Streamed, message_id: string): void {
  const key = keyOf(type, message_id);
  if (given.size < givenMax && !given.has(key)) given.set(key, '');
}

/** Something was left out: what comes next comes whole. */
export const gap = (streams: Streams | undefined): void => streams?.given.clear();

/** What the device was told of running messages after `hello.ack`. */
export function begun(streams: Streams | undefined, frames: readonly string[]): void {
  if (streams === undefined) return;
  for (const frame of frames) {
    const { type, payload } = JSON.parse(frame) as Whole;
    if (isStreamed(type) && streams.given.size < givenMax) streams.given.set(keyOf(type, payload.message_id), payload.text);
  }
}
