import { type Static, Type } from 'typebox';
import { errorCodes } from '../errors.js';
import { limits } from '../limits.js';
import { ChannelEntry } from './channel.js';
import { CursorSchema, Timestamp } from './shared.js';

/** A device's P-256 public key and a secret it shares, base64url, as in a Web Push subscription (RFC 8291). */
const PushKeys = Type.Object({
  p256dh: Type.String({ minLength: 1, maxLength: limits.push_key_length }),
  auth: Type.String({ minLength: 1, maxLength: limits.push_key_length }),
});
/** A Web Push subscription, as a browser gives it. */
const Subscription = Type.Object({ endpoint: Type.String({ minLength: 1, maxLength: limits.push_token_length }), keys: PushKeys });
const pushTargets = {
  fcm_token: Type.Optional(Type.String({ maxLength: limits.push_token_length })),
  /** With `fcm_token`: what is pushed there can be encrypted to them. */
  fcm_keys: Type.Optional(PushKeys),
  ntfy_topic: Type.Optional(Type.String({ maxLength: limits.topic_length })),
  webpush: Type.Optional(Type.Union([Subscription, Type.Null()])),
};

/** `caps` values of the wrong type count as absent: an unknown ability must not keep an old app out. */
export const Hello = Type.Object({
  token: Type.String({ minLength: 1, maxLength: limits.token_length }),
  device_id: Type.String({ minLength: 1, maxLength: limits.device_id_length }),
  device_name: Type.Optional(Type.String({ maxLength: limits.device_name_length })),
  caps: Type.Optional(Type.Unknown()),
  ...pushTargets,
});

/** What a device said it can do, with everything it did not say filled in. */
export interface DeviceCaps {
  /** The lowest protocol major the device speaks. */
  readonly min_protocol: number;
  readonly cursors: boolean;
  readonly delta: boolean;
  readonly reasoning: boolean;
  readonly media: boolean;
  readonly media_url: boolean;
  readonly push: string;
}

export function deviceCaps(caps: unknown): DeviceCaps {
  const given: Record<string, unknown> = typeof caps === 'object' && caps !== null ? { ...caps } : {};
  const on = (name: string): boolean => given[name] === true;
  return {
    min_protocol: typeof given.min_protocol === 'number' ? given.min_protocol : 1,
    cursors: on('cursors'),
    delta: on('delta'),
    reasoning: on('reasoning'),
    media: on('media'),
    media_url: on('media_url'),
    push: typeof given.push === 'string' ? given.push : 'none',
  };
}

export const HelloAck = Type.Object({
  server_caps: Type.Object({
    streaming: Type.Boolean(),
    reasoning: Type.Boolean(),
    tools: Type.Boolean(),
    media: Type.Boolean(),
    search: Type.Boolean(),
    push: Type.Enum(['fcm', 'ntfy', 'webpush', 'none']),
    pickers: Type.Boolean(),
    cursors: Type.Optional(Type.Boolean()),
    delta: Type.Optional(Type.Boolean()),
  }),
  sync_cursor: CursorSchema,
  last_pushed_cursor: CursorSchema,
  channels: Type.Array(ChannelEntry),
  limits: Type.Optional(Type.Record(Type.String(), Type.Number())),
  /** What an app needs to be pushed to. */
  push: Type.Optional(Type.Object({ vapid_key: Type.Optional(Type.String()) })),
  server_ts: Type.Optional(Timestamp),
});

export const Status = Type.Object({ state: Type.Enum(['online', 'restarting', 'degraded']) });

export const ErrorPayload = Type.Object({
  code: Type.Enum(errorCodes),
  message: Type.String(),
  retry_after_ms: Type.Optional(Type.Integer({ minimum: 1 })),
});

export const Ping = Type.Object({ ts: Type.Optional(Type.Number()) });
/** `ts` comes back as it was sent: an integer that a double cannot hold would come back as another. */
export const refinePing = ({ ts = 0 }: Static<typeof Ping>): string | undefined =>
  Number.isInteger(ts) && !Number.isSafeInteger(ts) ? 'ts: must be within 2^53' : undefined;
export const Pong = Type.Object({ ts: Type.Optional(Type.Number()), server_ts: Timestamp });

/** `{ok:true}` answers requests that have no frame of their own; `message_id` with `agent.steer`. */
export const AckDown = Type.Object({ ok: Type.Literal(true), message_id: Type.Optional(Type.String()) });
/** From devices with the `cursors` cap: everything up to `cursor` is stored. */
export const AckUp = Type.Object({ cursor: CursorSchema });

export const Sync = Type.Object({ cursor: Type.Optional(CursorSchema) });
export const SyncDone = Type.Object({
  cursor: CursorSchema,
  /** Frames are missing because they were past retention: reload by `history`. */
  truncated: Type.Optional(Type.Boolean()),
  /** The asked cursor is above the head: reload by `history` and adopt `cursor`. */
  reset: Type.Optional(Type.Boolean()),
});

export const FcmRegister = Type.Object(pushTargets);

const timeOfDay = Type.String({ minLength: 5, maxLength: 5 });
const isTimeOfDay = (text: string): boolean => /^([01]\d|2[0-3]):[0-5]\d$/.test(text);
/** What a device does not want to be pushed, of one lane or, without a `chat_id`, of all. Nothing given: no rule. */
export const PushMute = Type.Object({
  muted_until: Type.Optional(Type.Union([Timestamp, Type.Null()])),
  /** `HH:MM` in a time zone such as `Europe/Berlin`; `to` before `from` reaches over midnight. */
  quiet: Type.Optional(
    Type.Union([Type.Object({ from: timeOfDay, to: timeOfDay, time_zone: Type.String({ minLength: 1, maxLength: 64 }) }), Type.Null()]),
  ),
});
export function refinePushMute({ quiet }: Static<typeof PushMute>): string | undefined {
  if (quiet === undefined || quiet === null) return undefined;
  for (const name of ['from', 'to'] as const) if (!isTimeOfDay(quiet[name])) return `quiet.${name}: must be HH:MM`;
  try {
    new Intl.DateTimeFormat('en', { timeZone: quiet.time_zone });
    return undefined;
  } catch {
    return 'quiet.time_zone: unknown';
  }
}
