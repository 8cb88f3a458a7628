import { notFound } from '@iris/protocol';
import { type DeviceHandler, ok } from '../context.js';

/** What is given takes the place of what was; an empty string takes it away. */
export const fcmRegister: DeviceHandler<'fcm.register'> = async ({ tenant_id, device_id, frame }, { store }) => {
  const { fcm_token, ntfy_topic } = frame.payload;
  const set = await store.devices.setPush(tenant_id, device_id, {
    ...(fcm_token === undefined ? {} : { fcm_token: fcm_token === '' ? null : fcm_token }),
    ...(ntfy_topic === undefined ? {} : { ntfy_topic: ntfy_topic === '' ? null : ntfy_topic }),
  });
  if (!set) throw notFound('device');
  return ok;
};
