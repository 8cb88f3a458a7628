import { type Static, Type } from 'typebox';

const n = (value: number, description: string) =>
  Type.Integer({ default: value, minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description });

/** What a tenant may use. Every value has a default from configuration and can be changed per tenant. */
export const Quotas = Type.Object({
  devices: n(1_000, 'device records of the tenant'),
  connections: n(1_000, 'live device connections of the tenant'),
  agents: n(20, 'agents of the tenant'),
  channels: n(10_000, 'channels and threads of the tenant'),
  sends_per_second: n(20, '`message.send` a second and device'),
  sends_burst: n(300, '`message.send` at once and device'),
  tenant_sends_per_second: n(500, '`message.send` a second of all devices of the tenant together'),
  tenant_sends_burst: n(5_000, '`message.send` at once of all devices of the tenant together'),
  frames_per_second: n(100, 'frames a second and connection'),
  frames_burst: n(1_000, 'frames at once and connection'),
  file_bytes: n(100 * 1024 * 1024, 'bytes of one file'),
  stored_bytes: n(10 * 1024 * 1024 * 1024, 'bytes of media stored'),
  upload_bytes_per_day: n(20 * 1024 * 1024 * 1024, 'bytes of uploads begun on a day (UTC)'),
  running_turns: n(50, 'turns running at once'),
  waiting_per_lane: n(100, 'messages of one lane waiting for an agent'),
  outbox_max_frames: n(100_000, 'durable frames kept for `sync`'),
  outbox_max_age_ms: n(14 * 24 * 3600 * 1000, 'milliseconds a durable frame is kept for `sync`'),
  weight: Type.Integer({
    default: 10,
    minimum: 1,
    maximum: 1_000,
    description: 'its share of an instance or worker that is full, beside the weights of the others',
  }),
  history_max_age_ms: n(0, 'milliseconds messages are kept; 0 is for ever'),
});
export type Quotas = Static<typeof Quotas>;

export const defaultQuotas: Quotas = Object.freeze(
  Object.fromEntries(Object.entries(Quotas.properties).map(([name, schema]) => [name, (schema as unknown as { default: number }).default])),
) as Quotas;
