import { rowOf } from '@iris/protocol';
import type { TSchema } from 'typebox';
import { Compile, type Validator } from 'typebox/compile';

/** A frame as it came: the kit looks at everything itself and trusts no type. */
export interface AnyFrame {
  readonly v?: number;
  readonly type: string;
  readonly id?: number | string;
  readonly chat_id?: string;
  readonly thread_id?: string | null;
  readonly cursor?: number;
  /** On the agent link. */
  readonly seq?: number;
  readonly ack?: number;
  readonly turn_id?: string;
  readonly payload: Payload;
}
/** The fields that tests look at by name; any other is there as `unknown`. */
export interface Payload {
  readonly message_id?: string;
  readonly message_ids?: readonly string[];
  readonly role?: string;
  readonly text?: string;
  readonly final_text?: string;
  readonly reasoning?: string;
  readonly ts?: number;
  readonly cursor?: number;
  readonly sync_cursor?: number;
  readonly code?: string;
  readonly message?: string;
  readonly retry_after_ms?: number;
  readonly index?: number;
  readonly offset?: number;
  readonly picker_id?: string;
  readonly value?: string | readonly string[];
  readonly state?: string;
  readonly reason?: string;
  readonly interrupted?: boolean;
  readonly late?: boolean;
  readonly truncated?: boolean;
  readonly reset?: boolean;
  readonly has_more?: boolean;
  readonly messages?: readonly Payload[];
  readonly client_ref?: string;
  readonly chat_id?: string;
  readonly thread_id?: string | null;
  readonly [name: string]: unknown;
}

/** A type, a list of them, or a test of the whole frame. */
export type Match = string | readonly string[] | ((frame: AnyFrame) => boolean);

export function matcher(match: Match): (frame: AnyFrame) => boolean {
  if (typeof match === 'function') return match;
  const types = typeof match === 'string' ? [match] : match;
  return (frame) => types.includes(frame.type);
}

/** One line for a failure's message. */
export function showFrame(frame: AnyFrame): string {
  const { type, v: _, ...rest } = frame;
  const text = JSON.stringify(rest);
  return `${type} ${text.length > 300 ? `${text.slice(0, 300)}…` : text}`;
}

const compiled = new Map<string, Validator>();

/** What is wrong with a frame from the gateway, by the frame table; undefined when nothing is. */
export function faultOf(frame: unknown, side: 'down' | 'agent_down'): string | undefined {
  if (typeof frame !== 'object' || frame === null) return 'not an object';
  const { v, type, id, chat_id, thread_id, cursor, payload } = frame as Record<string, unknown>;
  if (v !== 1) return 'v is not 1';
  if (typeof type !== 'string') return 'no type';
  // Stands where a frame was withdrawn, so that its `seq` is not missing.
  if (side === 'agent_down' && type === 'void') return undefined;
  const row = rowOf(type)?.[side];
  if (row === undefined) return `${type} is not a type of this direction`;
  if (id !== undefined && typeof id !== 'string' && typeof id !== 'number') return `${type}: id`;
  if (chat_id !== undefined && typeof chat_id !== 'string') return `${type}: chat_id`;
  if (thread_id !== undefined && thread_id !== null && typeof thread_id !== 'string') return `${type}: thread_id`;
  if (cursor !== undefined && !Number.isSafeInteger(cursor)) return `${type}: cursor`;
  const key = `${side} ${type}`;
  const validator = compiled.get(key) ?? Compile(row.schema as TSchema);
  compiled.set(key, validator);
  if (validator.Check(payload)) return undefined;
  const fault = [...validator.Errors(payload)][0];
  return `${type}: payload${fault?.instancePath ?? ''} ${fault?.message ?? 'does not fit'}`;
}

export const classOf = (type: string): 'durable' | 'coalesced' | 'live' | 'response' | undefined => rowOf(type)?.down?.class;
