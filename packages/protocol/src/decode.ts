import type { Validator } from 'typebox/compile';
import type { ErrorCode } from './errors.js';
import type { AgentUpFrame, RequestId, UpFrame } from './frame.js';
import type { FrameRow, PayloadRow, UpRow } from './frame-row.js';
import { type AgentUpType, frameTable, protocolVersion } from './frame-table.js';
import { deviceCaps } from './frames/connection.js';
import { limits } from './limits.js';
import { rowFault, validatorOf } from './payload-fault.js';
import { cleanValue, exceedsCodePoints, isDeeperThan, mayNeedCleaning, nestsDeeperThan } from './text.js';

/**
 * What a text frame turned out to be. Each but `frame` has the `message` of its `error`, and the frame's `id` when that can be echoed.
 * `malformed`: no frame at all (not JSON, not an object, no string `type`); so many a minute close the connection with 4400.
 * `version`: another major version; before `hello` it closes with 4400. `unknown`: a type that this side does not say; ignored unless it has an
 * `id`. `invalid`: a known type that breaks its rules, named by field; nothing may be changed.
 */
export type Decoded<F, R> =
  | {
      readonly kind: 'frame';
      readonly frame: F;
      readonly row: R;
      /** The frame as JSON text, cleaned: what the session parses again. */
      readonly text: string;
    }
  | { readonly kind: 'malformed'; readonly id?: RequestId; readonly message: string }
  | { readonly kind: 'version'; readonly id?: RequestId; readonly message: string }
  | { readonly kind: 'unknown'; readonly id?: RequestId; readonly type: string; readonly message: string; readonly seq?: number }
  | {
      readonly kind: 'invalid';
      readonly id?: RequestId;
      readonly type: string;
      readonly message: string;
      /** `auth` for the fields of `hello` that say who is there, else `unsupported`. */
      readonly code: ErrorCode;
      readonly seq?: number;
    };

type Side = 'up' | 'agent_up';
type Row = PayloadRow & { readonly scope?: string; readonly turn?: string; readonly durable?: boolean };

/** What decoding must know of a type, looked up once per frame. A `Map`, so that `constructor` is no type. */
interface Known {
  readonly row: Row;
  readonly validator: () => Validator;
  /** The frame is about a lane, so its `chat_id` and `thread_id` are read, from the envelope or the payload. */
  readonly scoped: boolean;
}
const knownBy = (side: Side): ReadonlyMap<string, Known> =>
  new Map(
    Object.entries(frameTable as Record<string, FrameRow>).flatMap(([type, sides]): [string, Known][] => {
      const row: Row | undefined = sides[side];
      if (row === undefined) return [];
      return [[type, { row, validator: () => validatorOf(row.schema), scoped: (row.scope ?? row.turn) !== 'none' }]];
    }),
  );
const known = { up: knownBy('up'), agent_up: knownBy('agent_up') };

/** A request's id, as it may be echoed: a safe integer or a string of 1–64 characters. */
export const isRequestId = (x: unknown): x is RequestId =>
  typeof x === 'number' ? Number.isSafeInteger(x) : isText(x, limits.request_id_length);

/** Decode one text frame of a device. Never throws. */
export const decode = (text: string): Decoded<UpFrame, UpRow> => decodeSide(text, 'up') as Decoded<UpFrame, UpRow>;
/** Decode one text frame of an agent. Never throws. */
export const decodeAgent = (text: string): Decoded<AgentUpFrame, (typeof frameTable)[AgentUpType]['agent_up']> =>
  decodeSide(text, 'agent_up') as Decoded<AgentUpFrame, (typeof frameTable)[AgentUpType]['agent_up']>;

/** Up to here parsing first is cheaper than looking at brackets first, whatever they are. */
const scanFrom = 16 * 1024;
/** What nests deeper is not parsed at all, so its `id` stays unread. */
const hopelessDepth = 1_000;

function decodeSide(source: string, side: Side): Decoded<unknown, unknown> {
  if (source.length > scanFrom && nestsDeeperThan(source, hopelessDepth)) return { kind: 'malformed', message: tooDeep };
  let value: unknown;
  try {
    value = JSON.parse(source);
  } catch {
    return { kind: 'malformed', message: 'not JSON' };
  }
  if (!isRecord(value)) return { kind: 'malformed', message: 'not an object' };

  // `id: null` is the same as no `id`. Another id of the wrong shape cannot be echoed: its error carries none.
  const id = value.id ?? undefined;
  if (id !== undefined && !isRequestId(id))
    return { kind: 'invalid', type: '', code: 'unsupported', message: 'id: must be a safe integer or a string of 1–64 characters' };
  const withId = id === undefined ? {} : { id };
  const { type, seq } = value;
  if (typeof type !== 'string') return { kind: 'malformed', ...withId, message: 'type: missing' };
  if (value.v !== undefined && value.v !== protocolVersion)
    return { kind: 'version', ...withId, message: `v: only ${protocolVersion} is spoken here` };

  const found = known[side].get(type);
  const withSeq = side === 'agent_up' && isCount(seq) ? { seq } : {};
  if (found === undefined) return { kind: 'unknown', ...withId, ...withSeq, type: type.slice(0, 64), message: 'type: unknown' };
  const invalid = (message: string, code: ErrorCode = 'unsupported') =>
    ({ kind: 'invalid', ...withId, ...withSeq, type, code, message }) as const;
  if (isDeeperThan(value, limits.json_depth)) return invalid(tooDeep);

  let text = source;
  if (mayNeedCleaning(source)) {
    const cleaned = cleanValue(value) as Record<string, unknown>;
    if (cleaned !== value) {
      // The id is echoed exactly, whatever it holds.
      value = id === undefined ? cleaned : { ...cleaned, id };
      text = JSON.stringify(value);
    }
  }
  return check(value as Record<string, unknown>, type, found, { side, text, invalid, withId });
}

type Invalid = (message: string, code?: ErrorCode) => Decoded<never, never>;

function check(
  value: Record<string, unknown>,
  type: string,
  { row, validator, scoped }: Known,
  { side, text, invalid, withId }: { side: Side; text: string; invalid: Invalid; withId: { id?: RequestId } },
): Decoded<unknown, unknown> {
  const payload = value.payload === undefined ? {} : value.payload;
  if (!isRecord(payload)) return invalid('payload: must be an object');
  const frame: Record<string, unknown> = { type, ...withId, payload };
  if (scoped) {
    const chat_id = value.chat_id ?? payload.chat_id ?? undefined;
    const thread_id = value.thread_id !== undefined ? value.thread_id : payload.thread_id;
    if (chat_id !== undefined) {
      if (!isText(chat_id, limits.id_length)) return invalid(`chat_id: ${idRule}`);
      frame.chat_id = chat_id;
    } else if (row.scope === 'lane') return invalid('chat_id: missing');
    if (thread_id !== undefined) {
      if (thread_id !== null && !isText(thread_id, limits.id_length)) return invalid(`thread_id: ${idRule}`);
      frame.thread_id = thread_id;
    }
  }
  const fault = rowFault(row, validator(), payload, frame);
  if (fault !== undefined) return invalid(fault, type === 'hello' && side === 'up' && saysWho.test(fault) ? 'auth' : 'unsupported');
  if (side === 'agent_up') {
    const wrong = linkFault(value, row);
    if (wrong !== undefined) return invalid(wrong);
    if (value.seq !== undefined) frame.seq = value.seq;
    if (value.ack !== undefined) frame.ack = value.ack;
    if (typeof value.turn_id === 'string') frame.turn_id = value.turn_id;
  } else if (type === 'hello' && deviceCaps(payload.caps).min_protocol > protocolVersion)
    return { kind: 'version', ...withId, message: `caps.min_protocol: only ${protocolVersion} is spoken here` };
  return { kind: 'frame', frame, row, text };
}

/** What the agent link adds to the envelope. */
function linkFault({ seq, ack, turn_id }: Record<string, unknown>, row: Row): string | undefined {
  if (seq === undefined ? row.durable : !isCount(seq) || seq === 0) return 'seq: must be a positive integer';
  if (ack !== undefined && !isCount(ack)) return 'ack: must be an integer';
  if (turn_id === undefined || turn_id === null) return row.turn === 'required' ? 'turn_id: missing' : undefined;
  return isText(turn_id, limits.id_length) ? undefined : `turn_id: ${idRule}`;
}

const tooDeep = `more than ${limits.json_depth} levels deep`;
const idRule = `must be a string of 1–${limits.id_length} characters`;
const saysWho = /^(?:token|device_id)\b/;
const isRecord = (x: unknown): x is Record<string, unknown> => typeof x === 'object' && x !== null && !Array.isArray(x);
const isText = (x: unknown, max: number): x is string => typeof x === 'string' && x !== '' && !exceedsCodePoints(x, max);
const isCount = (x: unknown): x is number => typeof x === 'number' && Number.isSafeInteger(x) && x >= 0;
