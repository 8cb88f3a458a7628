import { notFound } from '@iris/protocol';
import { type DeviceHandler, ok } from '../context.js';
import { targetsOf } from '../rules/push-targets.js';

/** What is given takes the place of what was; an empty string, or null, takes it away. */
export const fcmRegister: DeviceHandler<'fcm.register'> = async ({ tenant_id, device_id, frame }, { store, clock }) => {
  const set = await store.pushTargets.register(tenant_id, device_id, targetsOf(frame.payload, { forget: true }), clock.now());
  if (!set) throw notFound('device');
  return ok;
};
