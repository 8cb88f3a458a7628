import {
  type ClientState,
  type CommandEntry,
  type ConnectionState,
  createClient,
  type IrisClient,
  keyOf,
  type LaneAddress,
} from '@iris/client';
import { computed, effect, type ReadonlySignal, signal } from '@preact/signals';
import type { Address } from './address.js';
import { askPushPermission, type PushPermission, pushPermission, subscribe } from './push.js';

/** What the page shows, as signals over the client. */
export interface Session {
  readonly client: IrisClient;
  readonly state: ReadonlySignal<ClientState>;
  readonly connection: ReadonlySignal<ConnectionState>;
  readonly lane: ReadonlySignal<LaneAddress | undefined>;
  readonly commands: ReadonlySignal<readonly CommandEntry[]>;
  readonly notice: ReadonlySignal<string | undefined>;
  /** Whether this browser is pushed to while no page is open; undefined when the gateway does not push to browsers. */
  readonly push: ReadonlySignal<PushPermission | undefined>;
  /** The person wants it. */
  askForPush(): void;
  show(lane: LaneAddress): void;
  /** Run a request; what goes wrong is shown, never lost. */
  attempt(run: () => Promise<unknown>): void;
}

export function openSession(address: Address): Session {
  const client = createClient({ url: address.gateway, token: address.token, device_id: address.device_id, device_name: deviceName() });
  const state = signal(client.state);
  const connection = signal(client.connection);
  const chosen = signal<LaneAddress | undefined>(undefined);
  const commands = signal<readonly CommandEntry[]>([]);
  const notice = signal<string | undefined>(undefined);

  // One render per animation frame, however many frames came: `message.update` carries the whole text.
  let scheduled = false;
  client.subscribe(() => {
    if (scheduled) return;
    scheduled = true;
    const run = (): void => {
      scheduled = false;
      state.value = client.state;
      connection.value = client.connection;
    };
    if (document.visibilityState === 'visible') requestAnimationFrame(run);
    else queueMicrotask(run);
  });

  const online = computed(() => connection.value.kind === 'online');
  const lane = computed((): LaneAddress | undefined => {
    const channels = state.value.channels;
    const wanted = chosen.value;
    if (wanted && channels.some((channel) => keyOf(channel) === keyOf(wanted))) return wanted;
    const first = channels.find((channel) => channel.is_default) ?? channels[0];
    return first && { chat_id: first.chat_id, thread_id: first.thread_id ?? null };
  });
  const laneKey = computed(() => lane.value && keyOf(lane.value));

  const permission = signal(pushPermission());
  const vapid_key = computed(() => state.value.vapid_key);
  const push = computed(() => (vapid_key.value === undefined ? undefined : permission.value));

  const session: Session = {
    client,
    push,
    askForPush() {
      session.attempt(async () => {
        permission.value = await askPushPermission();
      });
    },
    state,
    connection,
    lane,
    commands,
    notice,
    show(next) {
      chosen.value = next;
    },
    attempt(run) {
      run().then(
        () => {
          notice.value = undefined;
        },
        (error: Error) => {
          notice.value = error.message;
        },
      );
    },
  };

  effect(() => {
    if (!online.value || !laneKey.value) return;
    const open = lane.peek()!;
    if (state.peek().lanes.get(keyOf(open))?.has_more === undefined) session.attempt(() => client.loadHistory(open));
  });
  effect(() => {
    const key = vapid_key.value;
    if (online.value && key !== undefined && permission.value === 'granted') session.attempt(() => subscribe(client, key));
  });
  effect(() => {
    if (!online.value) return;
    client.commands().then(
      (list) => {
        commands.value = list;
      },
      () => {},
    );
  });
  // What is on the screen of a page that is looked at has been read.
  const newest = computed(() => {
    const view = laneKey.value === undefined ? undefined : state.value.lanes.get(laneKey.value);
    const item = view?.items.findLast((other) => other.kind === 'message' && other.state === 'done' && other.message.role !== 'user');
    return item?.kind === 'message' ? item.message.message_id : undefined;
  });
  let read: string | undefined;
  const markRead = (): void => {
    const id = newest.peek();
    if (id === undefined || id === read || !online.peek() || document.visibilityState !== 'visible') return;
    read = id;
    client.markRead(lane.peek()!, id);
  };
  effect(() => {
    if (newest.value && online.value) markRead();
  });
  document.addEventListener('visibilitychange', markRead);

  client.open();
  return session;
}

function deviceName(): string {
  const browser = /Firefox|Edg|Chrome|Safari/.exec(navigator.userAgent)?.[0] ?? 'Browser';
  return `${browser === 'Edg' ? 'Edge' : browser} on ${navigator.platform || 'the web'}`;
}
