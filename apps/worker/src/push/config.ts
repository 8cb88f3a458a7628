import { type Static, Type } from 'typebox';

const ms = (value: number, description: string) =>
  Type.Integer({ default: value, minimum: 1, maximum: 30 * 24 * 3600 * 1000, description });
const count = (value: number, description: string) => Type.Integer({ default: value, minimum: 1, maximum: 1_000_000, description });
const secret = (description: string) => Type.Optional(Type.String({ minLength: 1, secret: true, description }));

/** What a worker is told about pushes. Credentials come from the environment or, with `_FILE`, from files; they are in no log. */
export const PushConfig = Type.Object({
  push_providers: Type.Array(Type.String({ pattern: '^(fcm|webpush|ntfy)$' }), {
    default: [],
    description: 'who carries pushes: fcm, webpush, ntfy; the same for sessions and workers; none: nobody is pushed',
  }),
  push_live_ms: ms(8_000, 'milliseconds a connected device has to confirm a frame before it is pushed'),
  push_age_ms: ms(4 * 3600 * 1000, 'milliseconds after which a frame is not worth a push any more'),
  push_attempts: count(8, 'how often a provider is asked for one push'),
  push_backoff_ms: ms(1_000, 'first pause before a provider is asked again; doubles up to five minutes; Retry-After is kept to'),
  push_timeout_ms: ms(10_000, 'milliseconds a provider has to answer'),
  push_claim_ms: ms(20_000, 'milliseconds after which a push whose worker said nothing more is taken over; longer than push_timeout_ms'),
  push_repeat_unknown: Type.Boolean({
    default: true,
    description: 'a push whose worker died before it heard the answer is sent again under the same tag and cursor; false: it is given up',
  }),
  push_checks: count(4, 'tenants looked at at once; each look asks Postgres about ten things at once'),
  push_at_once: count(200, 'requests under way to one server of a provider'),
  push_fcm_per_second: count(500, 'requests a second to FCM, per worker'),
  push_webpush_per_second: count(200, 'requests a second to one Web Push server, per worker'),
  push_ntfy_per_second: count(50, 'requests a second to the ntfy server, per worker'),
  push_sweep_ms: ms(2_000, 'how often pushes that are due again, or forgotten, are looked for'),
  push_keep_ms: ms(30 * 24 * 3600 * 1000, 'milliseconds the ledger is kept'),
  push_answer_url: Type.Optional(
    Type.String({ description: 'where notifications answer, such as https://iris.example/push/answer; absent: they cannot' }),
  ),
  push_fcm_account: secret('service account of the Firebase project, JSON as Google gives it'),
  push_fcm_url: Type.String({ default: 'https://fcm.googleapis.com', description: 'FCM HTTP v1' }),
  push_vapid_public_key: Type.Optional(Type.String({ description: 'P-256 public key, 65 bytes, base64url' })),
  push_vapid_private_key: secret('its private half, 32 bytes, base64url'),
  push_vapid_subject: Type.Optional(Type.String({ description: 'whom push services may write to: mailto: or https:' })),
  push_webpush_hosts: Type.Array(Type.String(), {
    default: [
      'fcm.googleapis.com',
      'android.googleapis.com',
      'updates.push.services.mozilla.com',
      '*.push.services.mozilla.com',
      '*.push.apple.com',
      '*.notify.windows.com',
    ],
    description: 'servers a subscription may name; `http://host:port` allows one without TLS',
  }),
  push_ntfy_url: Type.String({ default: 'https://ntfy.sh', description: 'the ntfy server' }),
  push_ntfy_token: secret('access token of the ntfy server'),
});
export type PushConfig = Static<typeof PushConfig>;
