import type { Cursor, DownFrame, DownFrameOf, DownPayload } from '@iris/protocol';
import { type Connection, type ConnectionState, connection, type IrisError } from './connection.js';
import { browserClock, browserSocket, type ClientClock, type SocketLike } from './socket.js';
import {
  apply,
  applyHistory,
  type ClientState,
  closePicker,
  emptyLane,
  emptyState,
  keyOf,
  type LaneView,
  sendingItem,
  sendingKey,
  upsert,
  withLane,
} from './state.js';
import { type Transfers, transfers } from './transfers.js';
import { typingWatch } from './typing.js';

export interface ClientOptions {
  /** `ws://…/ws` or `wss://…/ws`. */
  readonly url: string;
  readonly token: string;
  /** Stable for the installation, unique within the tenant. */
  readonly device_id: string;
  readonly device_name?: string;
  /** For apps that keep frames themselves: everything up to here is kept. Without it the gateway's watermark decides. */
  readonly cursor?: Cursor;
  /** Everything up to here has been given to the app: a place to start the next time. At most once a second. */
  readonly onCursor?: (cursor: Cursor) => void;
  readonly socket?: (url: string) => SocketLike;
  readonly clock?: ClientClock;
  /** Random text that makes a `client_ref` this device never used. */
  readonly newRef?: () => string;
  /** `message.delta` instead of whole texts. Default true. */
  readonly delta?: boolean;
}

export interface LaneAddress {
  readonly chat_id: string;
  readonly thread_id?: string | null;
}

/**
 * A device: one connection, the conversations as they stand, and the verbs of the wire protocol.
 * What was sent is sent again, under the same `client_ref`, until the gateway answers; it happens once.
 */
export interface IrisClient {
  open(): void;
  close(): void;
  readonly state: ClientState;
  readonly connection: ConnectionState;
  /** Called after each change; returns a function that ends it. */
  subscribe(listener: () => void): () => void;
  /** Every frame as it came, for those who want more than the state. */
  onFrame(listener: (frame: DownFrame) => void): () => void;
  /** Load the newest page of a lane, once; later calls page backwards. Resolves when the state has it. */
  loadHistory(lane: LaneAddress, limit?: number): Promise<void>;
  /** Resolves when the gateway has it, however often the line breaks meanwhile. Rejects when it is refused. */
  send(
    lane: LaneAddress | undefined,
    text: string,
    options?: { reply_to?: string; auto_thread?: boolean; media_refs?: readonly string[] },
  ): Promise<DownPayload<'message'>>;
  upload: Transfers['upload'];
  pull: Transfers['pull'];
  stop(lane: LaneAddress): Promise<void>;
  steer(lane: LaneAddress, text: string): Promise<void>;
  select(picker_id: string, value: string | string[]): Promise<void>;
  /** The person has seen the lane up to this message. */
  markRead(lane: LaneAddress, message_id: string): void;
  /** Where this device can be pushed to: a Web Push subscription; null takes it away. */
  registerPush(webpush: { endpoint: string; keys: { p256dh: string; auth: string } } | null): Promise<void>;
  remove(lane: LaneAddress, message_ids: readonly string[]): Promise<void>;
  createChannel(name: string, parent_chat_id?: string): Promise<DownPayload<'channel.created'>>;
  renameChannel(lane: LaneAddress, name: string): Promise<void>;
  deleteChannel(lane: LaneAddress): Promise<void>;
  commands(): Promise<DownPayload<'commands.catalog'>['commands']>;
  search(query: string, lane?: LaneAddress): Promise<DownPayload<'search.results'>>;
}

const ackEvery_ms = 1_000;
const pushWorthy = (frame: DownFrame): boolean =>
  frame.type === 'message' || frame.type === 'message.stop' || frame.type === 'notification' || frame.type.startsWith('picker.');

export function createClient(options: ClientOptions): IrisClient {
  const clock = options.clock ?? browserClock;
  const newRef = options.newRef ?? (() => `${clock.now().toString(36)}-${Math.floor(clock.random() * 2 ** 48).toString(36)}`);
  let state = emptyState;
  let line: ConnectionState = { kind: 'connecting', attempt: 0 };
  /** Everything up to here is in `state` (or was, before a reload). */
  let cursor = options.cursor;
  /** The highest cursor heard since hello; it counts only once `sync` has filled what lies below it. */
  let heardCursor: Cursor = 0;
  let acked: Cursor = 0;
  let ackTimer: { cancel(): void } | undefined;
  let synced = false;
  const listeners = new Set<() => void>();
  const frameListeners = new Set<(frame: DownFrame) => void>();
  /** Sends without an answer, in the order in which they were made. */
  const unsent = new Map<
    string,
    { lane: LaneAddress | undefined; payload: object; resolve(m: DownPayload<'message'>): void; reject(e: unknown): void; flying: boolean }
  >();

  const change = (next: ClientState): void => {
    if (next === state) return;
    state = next;
    for (const listener of listeners) listener();
  };
  const changeLane = (lane: LaneAddress, how: (view: LaneView) => LaneView): void => change(withLane(state, keyOf(lane), how));

  const typings = typingWatch({ clock, end: (key) => change(withLane(state, key, (view) => ({ ...view, typing: false }))) });
  const files = transfers({ wire: () => wire, clock, newRef });
  const wire: Connection = connection({
    url: options.url,
    socket: options.socket ?? browserSocket,
    clock,
    hello: () => ({
      token: options.token,
      device_id: options.device_id,
      ...(options.device_name === undefined ? {} : { device_name: options.device_name }),
      caps: { min_protocol: 1, cursors: true, delta: options.delta ?? true, reasoning: true },
    }),
    onState(next) {
      line = next;
      synced &&= next.kind === 'online';
      for (const listener of listeners) listener();
    },
    onHello: greeted,
    onBytes: files.bytes,
    onFrame: heard,
  });

  function greeted(ack: DownFrameOf<'hello.ack'>): void {
    typings.clear();
    // Busy and typing are told anew after each hello: what is left from before may be stale.
    const lanes = new Map([...state.lanes].map(([key, { busy: _, ...lane }]) => [key, { ...lane, typing: false }]));
    change(apply({ ...state, lanes }, ack as DownFrame));
    heardCursor = 0;
    // Without a state of our own there is nothing to continue: the device's watermark says what it has not seen.
    const from = cursor === undefined ? {} : { cursor };
    wire.request({ type: 'sync', payload: from }).then(
      (frame) => caughtUp(frame as DownFrameOf<'sync.done'>),
      () => {},
    );
    for (const send of unsent.values()) send.flying = false;
    flushSends();
  }

  function caughtUp(frame: DownFrameOf<'sync.done'>): void {
    synced = true;
    cursor = frame.payload.reset ? frame.payload.cursor : Math.max(cursor ?? 0, heardCursor, frame.payload.cursor);
    if (frame.payload.reset) acked = 0;
    if (frame.payload.truncated || frame.payload.reset) {
      // Frames are missing: forget what finished, keep what runs, and read history again for what was open.
      const open = [...state.lanes].filter(([, lane]) => lane.has_more !== undefined).map(([key]) => key);
      const lanes = new Map(
        [...state.lanes].map(([key, { has_more: _, ...lane }]) => [
          key,
          { ...lane, items: lane.items.filter((item) => item.kind === 'message' && item.state !== 'done') },
        ]),
      );
      change({ ...state, lanes });
      for (const key of open) {
        const [chat_id, thread_id] = key.split('\n');
        void client.loadHistory({ chat_id: chat_id!, thread_id: thread_id ?? null });
      }
    }
    acknowledge(true);
  }

  function heard(frame: DownFrame): void {
    files.heard(frame);
    change(apply(state, frame));
    typings.heard(frame);
    if (frame.cursor !== undefined) {
      heardCursor = Math.max(heardCursor, frame.cursor);
      if (synced) cursor = Math.max(cursor ?? 0, heardCursor);
      acknowledge(pushWorthy(frame));
    }
    for (const listener of frameListeners) listener(frame);
  }

  function acknowledge(now: boolean): void {
    if (!synced || cursor === undefined || cursor <= acked) return;
    if (!now) {
      if (ackTimer) return;
      ackTimer = clock.after(ackEvery_ms, () => {
        ackTimer = undefined;
        acknowledge(true);
      });
      return;
    }
    acked = cursor;
    options.onCursor?.(cursor);
    wire.tell({ type: 'ack', payload: { cursor } });
  }

  function flushSends(): void {
    if (!wire.online) return;
    for (const [ref, send] of unsent) {
      if (send.flying) continue;
      send.flying = true;
      wire.request({ type: 'message.send', ...send.lane, payload: send.payload }).then(
        (frame) => {
          unsent.delete(ref);
          send.resolve(frame.payload as DownPayload<'message'>);
        },
        (error: IrisError) => {
          // Lost with the line: it goes again, under the same name, after the next hello.
          if (error.code === 'closed') return;
          if (error.code === 'rate_limited' || error.code === 'internal') {
            clock.after(error.retry_after_ms ?? 1_000, () => {
              send.flying = false;
              flushSends();
            });
            return;
          }
          unsent.delete(ref);
          if (send.lane) failed(send.lane, ref, error.message);
          send.reject(error);
        },
      );
    }
  }

  const failed = (lane: LaneAddress, ref: string, failure: string): void =>
    changeLane(lane, (view) => {
      const item = view.items.find((other) => other.key === sendingKey(ref));
      return item?.kind === 'message' ? { ...view, items: upsert(view.items, { ...item, state: 'failed', failure }) } : view;
    });

  const done = async (frame: Parameters<Connection['request']>[0]): Promise<void> => void (await wire.request(frame));
  const loading = new Map<string, Promise<void>>();

  const client: IrisClient = {
    open: () => wire.open(),
    close() {
      typings.clear();
      wire.close();
    },
    get state() {
      return state;
    },
    get connection() {
      return line;
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    onFrame(listener) {
      frameListeners.add(listener);
      return () => void frameListeners.delete(listener);
    },
    loadHistory(lane, limit = 50) {
      const key = keyOf(lane);
      const under = loading.get(key);
      if (under) return under;
      const run = (async () => {
        const view = state.lanes.get(key) ?? emptyLane;
        if (view.has_more === false) return;
        const oldest =
          view.has_more === undefined ? undefined : view.items.find((item) => item.kind === 'message' && item.state === 'done');
        const before = oldest?.kind === 'message' ? { before_message_id: oldest.message.message_id } : {};
        const frame = (await wire.request({ type: 'history', ...lane, payload: { ...before, limit } })) as DownFrameOf<'history'>;
        changeLane(lane, (now) => applyHistory(now, frame.payload));
      })().finally(() => loading.delete(key));
      loading.set(key, run);
      return run;
    },
    send(lane, text, more = {}) {
      const client_ref = newRef();
      if (lane && !more.auto_thread)
        changeLane(lane, (view) => ({ ...view, items: [...view.items, sendingItem(client_ref, text, clock.now(), more.reply_to)] }));
      return new Promise((resolve, reject) => {
        unsent.set(client_ref, { lane, payload: { text, client_ref, ...more }, resolve, reject, flying: false });
        flushSends();
      });
    },
    upload: files.upload,
    pull: files.pull,
    stop: (lane) => done({ type: 'agent.stop', ...lane, payload: {} }),
    steer: (lane, text) => done({ type: 'agent.steer', ...lane, payload: { text } }),
    async select(picker_id, value) {
      await wire.request({ type: 'picker.select', payload: { picker_id, value } });
      // Every other device hears `picker.closed`; the one whose answer won is told by its ack.
      change(closePicker(state, picker_id, value));
    },
    markRead(lane, message_id) {
      changeLane(lane, (view) => (view.unread === 0 ? view : { ...view, unread: 0 }));
      wire.tell({ type: 'read.receipt', ...lane, payload: { message_id } });
    },
    registerPush: (webpush) => done({ type: 'fcm.register', payload: { webpush } }),
    remove: (lane, message_ids) => done({ type: 'message.delete', ...lane, payload: { message_ids } }),
    async createChannel(name, parent_chat_id) {
      const kind = parent_chat_id === undefined ? { kind: 'channel' } : { kind: 'thread', parent_chat_id };
      return (await wire.request({ type: 'channel.create', payload: { name, ...kind } })).payload as DownPayload<'channel.created'>;
    },
    renameChannel: (lane, name) => done({ type: 'channel.rename', ...lane, payload: { name } }),
    deleteChannel: (lane) => done({ type: 'channel.delete', ...lane, payload: {} }),
    commands: async () =>
      ((await wire.request({ type: 'commands.catalog', payload: {} })) as DownFrameOf<'commands.catalog'>).payload.commands,
    search: async (query, lane) =>
      ((await wire.request({ type: 'search', ...lane, payload: { query, scope: lane ? 'chat' : 'all' } })) as DownFrameOf<'search.results'>)
        .payload,
  };
  return client;
}
