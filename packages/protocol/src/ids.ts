/** Ids are opaque strings; each kind is its own type so that a `ChatId` cannot stand where a `MessageId` must. */
declare const brand: unique symbol;
type Id<K extends string> = string & { readonly [brand]: K };

/** One owner's space. Comes from a token alone, never from a frame. */
export type TenantId = Id<'tenant'>;
/** One app install, named by the app, unique within its tenant; 1–128 characters. */
export type DeviceId = Id<'device'>;
/** One WebSocket connection of a device or an agent; made by the edge, unique for ever. */
export type ConnectionId = Id<'connection'>;
export type EdgeId = Id<'edge'>;
export type SessionId = Id<'session'>;
/** `android:default` or `android:chan_<n>`; unique per tenant, never reused. */
export type ChatId = Id<'chat'>;
/** `t_<n>`; unique per tenant, never reused. */
export type ThreadId = Id<'thread'>;
export type MessageId = Id<'message'>;
export type PickerId = Id<'picker'>;
export type MediaId = Id<'media'>;
/** Bytes in the media store. Several files of a tenant may share them. */
export type ObjectId = Id<'object'>;
export type TurnId = Id<'turn'>;
export type AgentId = Id<'agent'>;
export type TokenId = Id<'token'>;
/** The agent process's stable installation name, given by the agent. */
export type InstallId = Id<'install'>;

/** A frame's position in its tenant's outbox: an integer, rising, below 2^53. */
export type Cursor = number;

/** `chat_id` + `thread_id`: one line of conversation. */
export interface Lane {
  readonly chat_id: ChatId;
  readonly thread_id: ThreadId | null;
}

/**
 * A lane as one string, for map keys and store fields. Our own ids hold no newline, and one always stands between the two, so that no
 * `chat_id` that a peer makes up reads as another lane of ours.
 */
export const laneKey = ({ chat_id, thread_id }: Lane): string => `${chat_id}\n${thread_id ?? ''}`;

/** The reverse of {@link laneKey}, for lanes of ours. */
export function laneOfKey(key: string): Lane {
  const at = key.indexOf('\n');
  const thread_id = key.slice(at + 1);
  return { chat_id: key.slice(0, at) as ChatId, thread_id: thread_id === '' ? null : (thread_id as ThreadId) };
}
