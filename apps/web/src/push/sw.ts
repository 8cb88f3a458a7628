/**
 * The page's service worker: shows what is pushed while no page is there, once each, takes it back when it is stale, and answers from it. Nothing is
 * cached and nothing is fetched but an answer.
 */
interface Shown {
  readonly cursor: number;
  readonly chat_id: string | undefined;
  readonly answer_url: string | undefined;
  readonly action_token: string | undefined;
}
interface Event {
  waitUntil(work: Promise<unknown>): void;
}
interface PushEvent extends Event {
  readonly data: { json(): unknown } | null;
}
interface ClickEvent extends Event {
  readonly action: string;
  readonly notification: Notification;
}
interface Page {
  focus(): Promise<unknown>;
}
interface Worker {
  readonly registration: ServiceWorkerRegistration;
  readonly location: Location;
  readonly clients: {
    matchAll(options: { type: 'window'; includeUncontrolled: boolean }): Promise<readonly Page[]>;
    openWindow(url: string): Promise<unknown>;
    claim(): Promise<void>;
  };
  skipWaiting(): Promise<void>;
  addEventListener(type: 'install' | 'activate', listener: (event: Event) => void): void;
  addEventListener(type: 'push', listener: (event: PushEvent) => void): void;
  addEventListener(type: 'notificationclick', listener: (event: ClickEvent) => void): void;
}

const worker = self as unknown as Worker;
const memory = 'iris-push';
/** Cursors of the last pushes that were shown: the same one may come again. */
const kept = 200;

worker.addEventListener('install', (event) => event.waitUntil(worker.skipWaiting()));
worker.addEventListener('activate', (event) => event.waitUntil(worker.clients.claim()));
worker.addEventListener('push', (event) => {
  let payload: Record<string, string> = {};
  try {
    payload = (event.data?.json() ?? {}) as Record<string, string>;
  } catch {}
  event.waitUntil(payload.type === 'withdraw' ? withdraw(payload) : show(payload));
});
worker.addEventListener('notificationclick', (event) => {
  const { action, notification } = event;
  notification.close();
  const { answer_url, action_token } = notification.data as Shown;
  event.waitUntil(
    action !== '' && answer_url !== undefined && action_token !== undefined ? answer(answer_url, action_token, action) : openPage(),
  );
});

async function show(payload: Record<string, string>): Promise<void> {
  const { title = 'Iris', body = 'New message', tag = 'iris', chat_id, answer_url, action_token, choices } = payload;
  const cursor = Number(payload.cursor ?? 0);
  const again = await seen(cursor);
  const data: Shown = { cursor, chat_id, answer_url, action_token };
  const offered = (choices === undefined ? [] : JSON.parse(choices)) as { value: string; label: string }[];
  const options = {
    body,
    tag,
    data,
    // One that came before is changed in place, without a sound.
    renotify: !again,
    silent: again,
    actions: offered.slice(0, 2).map(({ value, label }) => ({ action: value, title: label })),
  };
  if (again && (await worker.registration.getNotifications({ tag })).length === 0) return;
  await worker.registration.showNotification(title, options as NotificationOptions);
}

/** What is shown is replaced, silently, and then closed: browsers want something to be shown for each push. */
async function withdraw({ tag = 'iris', cursor = '0' }: Record<string, string>): Promise<void> {
  const shown = await worker.registration.getNotifications({ tag });
  const stale = shown.some(({ data }) => (data as Shown).cursor <= Number(cursor));
  if (!stale) return;
  await worker.registration.showNotification('Iris', { tag, body: 'Seen on another device', silent: true, data: { cursor: 0 } });
  for (const notification of await worker.registration.getNotifications({ tag })) notification.close();
}

/** Whether this cursor was shown before; from now on it was. */
async function seen(cursor: number): Promise<boolean> {
  const cache = await caches.open(memory);
  const key = new URL('shown-cursors', worker.location.href).href;
  const before = ((await (await cache.match(key))?.json()) ?? []) as number[];
  if (before.includes(cursor)) return true;
  await cache.put(key, new Response(JSON.stringify([...before, cursor].slice(-kept))));
  return false;
}

async function answer(url: string, token: string, value: string): Promise<void> {
  const headers = { 'content-type': 'application/json' };
  const { ok } = await fetch(url, { method: 'POST', headers, body: JSON.stringify({ token, value }) }).catch(() => ({ ok: false }));
  if (!ok) await openPage();
}

async function openPage(): Promise<void> {
  const [page] = await worker.clients.matchAll({ type: 'window', includeUncontrolled: true });
  await (page?.focus() ?? worker.clients.openWindow(worker.registration.scope));
}
