import type { TSchema } from 'typebox';
import { Compile, type Validator } from 'typebox/compile';
import type { AgentUpFrame, RequestId, UpFrame } from './frame.js';
import { type AgentUpType, type FrameRow, frameTable, protocolVersion, rowOf, type UpRow } from './frame-table.js';
import { limits } from './limits.js';
import { exceedsDepth, wellFormed } from './text.js';

/**
 * What a text frame turned out to be.
 * `malformed`: no frame at all (not JSON, not an object, no string `type`, too deep); counts towards closing 4400.
 * `version`: another major version. `unknown`: a type this version does not know, ignored unless it has an `id`.
 * `invalid`: a known type whose payload breaks its schema; nothing may be changed.
 */
export type Decoded<F, R> =
  | {
      readonly kind: 'frame';
      readonly frame: F;
      readonly row: R /** The frame's text, cleaned: what the session parses again. */;
      readonly text: string;
    }
  | { readonly kind: 'malformed'; readonly message: string }
  | { readonly kind: 'version'; readonly id?: RequestId; readonly message: string }
  | { readonly kind: 'unknown'; readonly id?: RequestId; readonly type: string; readonly message: string; readonly seq?: number }
  | { readonly kind: 'invalid'; readonly id?: RequestId; readonly type: string; readonly message: string; readonly seq?: number };

type Side = 'up' | 'agent_up';

/** Compiled once, when the module loads: a frame costs tens of nanoseconds to check. */
const validators: Record<Side, Map<string, Validator>> = { up: new Map(), agent_up: new Map() };
for (const [type, row] of Object.entries(frameTable) as [string, FrameRow][]) {
  if (row.up) validators.up.set(type, Compile(row.up.schema as TSchema));
  if (row.agent_up) validators.agent_up.set(type, Compile(row.agent_up.schema as TSchema));
}

const isRecord = (x: unknown): x is Record<string, unknown> => typeof x === 'object' && x !== null && !Array.isArray(x);
export const isRequestId = (x: unknown): x is RequestId =>
  typeof x === 'number' ? Number.isSafeInteger(x) : typeof x === 'string' && x.length >= 1 && x.length <= limits.request_id_length;

/** Decode one text frame of a device. Never throws. */
export const decode = (text: string): Decoded<UpFrame, UpRow> => decodeSide(text, 'up') as Decoded<UpFrame, UpRow>;
/** Decode one text frame of an agent. Never throws. */
export const decodeAgent = (text: string): Decoded<AgentUpFrame, (typeof frameTable)[AgentUpType]['agent_up']> =>
  decodeSide(text, 'agent_up') as Decoded<AgentUpFrame, (typeof frameTable)[AgentUpType]['agent_up']>;

function decodeSide(source: string, side: Side): Decoded<unknown, unknown> {
  if (exceedsDepth(source, limits.json_depth)) return { kind: 'malformed', message: `more than ${limits.json_depth} levels deep` };
  const text = wellFormed(source);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { kind: 'malformed', message: 'not JSON' };
  }
  if (!isRecord(value)) return { kind: 'malformed', message: 'not an object' };
  // `id: null` is the same as no `id`; any other id of the wrong shape cannot be echoed, so its error carries none.
  const id = value.id ?? undefined;
  if (id !== undefined && !isRequestId(id)) return { kind: 'invalid', type: '', message: 'id' };
  const withId = id === undefined ? {} : { id };
  const type = value.type;
  if (typeof type !== 'string') return { kind: 'malformed', message: 'type' };
  if (value.v !== undefined && value.v !== protocolVersion)
    return { kind: 'version', ...withId, message: `v: only ${protocolVersion} is spoken here` };

  const seq = value.seq;
  const withSeq = side === 'agent_up' && typeof seq === 'number' ? { seq } : {};
  const row = rowOf(type)?.[side];
  if (row === undefined) return { kind: 'unknown', ...withId, ...withSeq, type, message: 'type unknown' };
  const invalid = (message: string) => ({ kind: 'invalid', ...withId, ...withSeq, type, message }) as const;

  const payload = value.payload ?? {};
  if (!isRecord(payload)) return invalid('payload');
  const chat_id = value.chat_id ?? payload.chat_id ?? undefined;
  const thread_id = value.thread_id !== undefined ? value.thread_id : value.chat_id === undefined ? payload.thread_id : undefined;
  if (chat_id !== undefined && !isWireId(chat_id)) return invalid('chat_id');
  if (thread_id !== undefined && thread_id !== null && !isWireId(thread_id)) return invalid('thread_id');
  if ('scope' in row && row.scope === 'lane' && chat_id === undefined) return invalid('chat_id');

  const validator = validators[side].get(type)!;
  if (!validator.Check(payload)) return invalid(firstFault(validator, payload));
  const frame: Record<string, unknown> = { type, payload };
  if (id !== undefined) frame.id = id;
  if (chat_id !== undefined) frame.chat_id = chat_id;
  if (thread_id !== undefined) frame.thread_id = thread_id;
  if (side === 'agent_up') {
    if (seq !== undefined && !isSeq(seq)) return invalid('seq');
    if (value.ack !== undefined && !isSeq(value.ack)) return invalid('ack');
    if (value.turn_id !== undefined && value.turn_id !== null && !isWireId(value.turn_id)) return invalid('turn_id');
    if ('turn' in row && row.turn === 'required' && typeof value.turn_id !== 'string') return invalid('turn_id');
    if ('durable' in row && row.durable && seq === undefined) return invalid('seq');
    if (seq !== undefined) frame.seq = seq;
    if (value.ack !== undefined) frame.ack = value.ack;
    if (typeof value.turn_id === 'string') frame.turn_id = value.turn_id;
  }
  return { kind: 'frame', frame, row, text };
}

const isWireId = (x: unknown): boolean => typeof x === 'string' && x.length >= 1 && x.length <= limits.id_length;
const isSeq = (x: unknown): boolean => typeof x === 'number' && Number.isSafeInteger(x) && x >= 0;

function firstFault(validator: Validator, payload: unknown): string {
  for (const fault of validator.Errors(payload)) {
    const path = fault.instancePath.replace(/^\//, '').replaceAll('/', '.');
    const missing = (fault.params as { requiredProperties?: string[] } | undefined)?.requiredProperties?.[0];
    const field = missing !== undefined ? (path ? `${path}.${missing}` : missing) : path || 'payload';
    return `${field.slice(0, 100)}: ${fault.message}`;
  }
  return 'payload';
}
