import type { Cursor, TenantId } from '@iris/protocol';
import type { PushKind } from '@iris/store';
import type { Context, DeviceRequest } from '../context.js';
import { targetsOf } from '../rules/push-targets.js';

/** What a device that says hello is told of its pushes. */
export interface Welcome {
  /** Who carries them. */
  readonly kind: PushKind | 'none';
  readonly last_pushed_cursor: Cursor;
}

/** The first of these that a device has is the one that buzzes. */
export const preference = ['fcm', 'webpush', 'ntfy'] as const satisfies readonly PushKind[];
const look_ms = 50;

/**
 * Where the device can be pushed is written down, and pushes to it stop: those that wait are skipped, and one that is just being sent is waited for,
 * so that the cursor it is told covers it. Whoever decides from here on sees that the device is back.
 */
export async function welcome(
  { device_id, frame }: DeviceRequest<'hello'>,
  tenant_id: TenantId,
  { store, clock, config }: Context,
): Promise<Welcome> {
  const targets = targetsOf(frame.payload, { forget: false });
  if (targets.length > 0) await store.pushTargets.register(tenant_id, device_id, targets, clock.now());
  if (config.push_providers.length === 0) return { kind: 'none', last_pushed_cursor: 0 };
  const until = clock.now() + config.push_fence_ms;
  let fence = await store.pushLedger.fence(tenant_id, device_id, clock.now());
  while (fence.under_way > 0 && clock.now() < until) {
    await new Promise<void>((resolve) => void clock.after(look_ms, resolve));
    fence = await store.pushLedger.fence(tenant_id, device_id, clock.now());
  }
  const has = new Set((await store.pushTargets.list(tenant_id, device_id)).map(({ kind }) => kind));
  const kind = preference.find((one) => has.has(one) && config.push_providers.includes(one)) ?? 'none';
  return { kind, last_pushed_cursor: fence.last_pushed_cursor };
}
