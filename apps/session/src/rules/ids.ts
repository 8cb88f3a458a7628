import { createHash } from 'node:crypto';
import type { AgentId, InstallId, MessageId, PickerId, TenantId, TurnId } from '@iris/protocol';

/**
 * Ids that a retry makes again: a hash of what makes the thing the same thing. 128 bits, so that none can be guessed from another or
 * meet another by chance.
 */
const hashed = (...parts: readonly string[]): string => createHash('sha256').update(JSON.stringify(parts)).digest('base64url').slice(0, 22);

/** The message of a request, by the request's idempotency key: so a repeat finds it for ever, and the key itself need not be stored. */
export const messageIdOf = (tenant_id: TenantId, key: string): MessageId => `m_${hashed(tenant_id, 'message', key)}` as MessageId;

/** The file of a request, by the request's idempotency key; as part of an id. */
export const mediaIdOf = (tenant_id: TenantId, key: string): string =>
  Buffer.from(hashed(tenant_id, 'media', key), 'base64url').toString('hex');

/** Whether it can be an id of ours at all. */
export const isMessageId = (id: string): id is MessageId => /^m_[\w-]{22}$/.test(id);

/** A message has at most one turn, whether it starts one or a steer that was not taken becomes one. */
export const turnIdOf = (message_id: MessageId): TurnId => `tn_${message_id.slice(2)}` as TurnId;

/** Whose id it is that is mapped: agents reuse theirs on every resend, and only within a turn. */
export interface Namer {
  readonly tenant_id: TenantId;
  readonly agent_id: AgentId;
  readonly install_id: InstallId;
  readonly turn_id: TurnId | undefined;
}
const named = ({ tenant_id, agent_id, install_id, turn_id }: Namer): string[] => [tenant_id, agent_id, install_id, turn_id ?? ''];

/** Our id of what the agent calls `own_id`. */
export const agentMessageId = (namer: Namer, own_id: string): MessageId => `m_${hashed('agent', ...named(namer), own_id)}` as MessageId;
export const agentPickerId = (namer: Namer, own_id: string): PickerId => `p_${hashed('picker', ...named(namer), own_id)}` as PickerId;

/** What tells two finals of a turn apart, when it is not their id: a reply that is recovered and said again is the same message. */
export const finalMark = (turn_id: TurnId, role: string, text: string): string => `said:${hashed('said', turn_id, role, text)}`;

/** The key of a send that the app has named itself: the same from any of its connections. A later generation begins when the last is too old. */
export const clientKey = (device_id: string, client_ref: string, generation: number): string =>
  `ref:${hashed(device_id, client_ref, `${generation}`)}`;
