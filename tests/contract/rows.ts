import { randomUUID } from 'node:crypto';
import type { ChatId, MessageId, TenantId } from '@iris/protocol';
import type { MessageRow } from '@iris/store';

/** A user's message in the default channel. */
export const userMessage = (tenant_id: TenantId, fields: Partial<MessageRow> = {}): MessageRow => ({
  tenant_id,
  message_id: `m_${randomUUID()}` as MessageId,
  chat_id: 'android:default' as ChatId,
  thread_id: null,
  role: 'user',
  text: 'hello',
  reasoning: null,
  media: null,
  reply_to: null,
  model: null,
  tokens: null,
  runtime: null,
  ts: 1,
  cursor: null,
  idempotency_key: null,
  client_ref: null,
  device_id: null,
  turn_id: null,
  own_id: null,
  steer: false,
  interrupted: false,
  late: false,
  ...fields,
});
