import type { AgentDownFrame, AgentUpPayload, AgentUpType } from '@iris/protocol';

/** What the agent says, before the link gives it its `seq` and `ack`. Ids are plain strings here: they are the peer's or ours, opaque either way. */
export type Up = {
  [T in AgentUpType]: {
    readonly type: T;
    readonly id?: string;
    readonly chat_id?: string;
    readonly thread_id?: string | null;
    readonly turn_id?: string;
    readonly payload: AgentUpPayload<T>;
  };
}[AgentUpType];
/** The same without its place in the conversation. */
export type UpBody = { [T in AgentUpType]: Pick<Extract<Up, { type: T }>, 'type' | 'payload'> }[AgentUpType];
/** A durable frame: numbered, and kept until the gateway has acked the number. */
export type Kept = Up & { readonly seq: number };
export type Down = AgentDownFrame;
export type DownOf<T extends Down['type']> = Extract<Down, { type: T }>;

/** Close codes that this side knows by name. The full list is the gateway's. */
export const closing = {
  normal: 1000,
  away: 1001,
  lost: 1006,
  restarting: 1012,
  protocol: 4400,
  auth: 4401,
  revoked: 4403,
  replaced: 4409,
} as const;

/** What one frame may weigh on the link, with room for the envelope. Bytes. */
export const frame_bytes_max = 1024 * 1024 - 1024;
/** UTF-8 bytes of one message's text; longer ones go as several messages. */
export const text_bytes_max = 64 * 1024;

/** A frame as it came, or undefined when it is none. Its payload is the gateway's word and taken as such. */
export function parseDown(text: string): Down | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof value !== 'object' || value === null || typeof (value as { type?: unknown }).type !== 'string') return undefined;
  const payload = (value as { payload?: unknown }).payload ?? {};
  return { ...value, payload } as Down;
}
