import type { Lane, MessageId, TenantId } from '@iris/protocol';
import type { MessageRow, NewTurn, TurnRow } from '@iris/store';
import { turnIdOf } from './ids.js';

type Given = Pick<MessageRow, 'role' | 'text' | 'ts'> & Partial<Omit<MessageRow, 'tenant_id' | 'message_id' | 'cursor' | keyof Lane>>;

/** A message's row with what it does not have left out. Its place comes with the append. */
export function messageRow(tenant_id: TenantId, lane: Lane, message_id: MessageId, given: Given): MessageRow {
  return {
    tenant_id,
    chat_id: lane.chat_id,
    thread_id: lane.thread_id,
    message_id,
    reasoning: null,
    media: null,
    reply_to: null,
    model: null,
    tokens: null,
    runtime: null,
    cursor: null,
    idempotency_key: null,
    client_ref: null,
    device_id: null,
    turn_id: null,
    own_id: null,
    steer: false,
    interrupted: false,
    late: false,
    ...given,
  };
}

/** The turn that a message starts. */
export function newTurn(
  message: Pick<MessageRow, 'message_id' | 'device_id'>,
  more: Pick<TurnRow, 'kind' | 'created_at' | 'connection_id'>,
): NewTurn {
  return {
    turn_id: turnIdOf(message.message_id),
    agent_id: null,
    message_id: message.message_id,
    device_id: message.device_id,
    ...more,
  };
}
