import type { IrisClient } from '@iris/client';

/** Whether this browser can be pushed to, and has said that it may be. */
export type PushPermission = 'unsupported' | 'default' | 'granted' | 'denied';

export const pushPermission = (): PushPermission =>
  'serviceWorker' in navigator && 'PushManager' in window && 'Notification' in window ? Notification.permission : 'unsupported';

/** Asks the person, who must have clicked. */
export async function askPushPermission(): Promise<PushPermission> {
  return pushPermission() === 'unsupported' ? 'unsupported' : Notification.requestPermission();
}

/** Subscribes this browser with the gateway's key, and says where it can be pushed to. */
export async function subscribe(client: IrisClient, vapid_key: string): Promise<void> {
  const registration = await serviceWorker();
  const before = await registration.pushManager.getSubscription();
  // A subscription is for one key: with another it would be refused for ever.
  if (before !== null && textOf(before.options.applicationServerKey) !== vapid_key) await before.unsubscribe();
  const subscription = await registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: vapid_key });
  const { endpoint, keys } = subscription.toJSON();
  if (endpoint === undefined || keys?.p256dh === undefined || keys.auth === undefined) return;
  await client.registerPush({ endpoint, keys: { p256dh: keys.p256dh, auth: keys.auth } });
}

/** Beside the page, so that its scope is the page. */
export async function serviceWorker(): Promise<ServiceWorkerRegistration> {
  await navigator.serviceWorker.register(new URL('sw.js', location.href));
  return navigator.serviceWorker.ready;
}

const textOf = (key: ArrayBuffer | null): string =>
  btoa(String.fromCharCode(...new Uint8Array(key ?? new ArrayBuffer(0))))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');
