import type { UpPayload } from '@iris/protocol';
import type { PushTargets } from '@iris/store';

type Target = Parameters<PushTargets['register']>[2][number];

/**
 * Where a device says it can be pushed.
 * @param options.forget what is empty or null takes away; in `hello` it says nothing
 */
export function targetsOf(
  { fcm_token, fcm_keys, ntfy_topic, webpush }: UpPayload<'fcm.register'>,
  { forget }: { forget: boolean },
): Target[] {
  const given: (Target | undefined)[] = [
    fcm_token === undefined ? undefined : { kind: 'fcm', address: fcm_token === '' ? null : fcm_token, keys: fcm_keys ?? null },
    webpush === undefined
      ? undefined
      : { kind: 'webpush', address: webpush?.endpoint ?? null, keys: webpush === null ? null : webpush.keys },
    ntfy_topic === undefined ? undefined : { kind: 'ntfy', address: ntfy_topic === '' ? null : ntfy_topic },
  ];
  return given.filter((target): target is Target => target !== undefined && (forget || target.address !== null));
}
