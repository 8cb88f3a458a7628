import { type Bus, memoryHub, pack, type ToEdge, unpack } from '@iris/bus';
import { type Jobs, memoryJobs } from '@iris/jobs';
import { type MediaStore, type MediaWriter, memoryMedia, NoRoom } from '@iris/media';
import { memoryOutbox, type Outbox } from '@iris/outbox';
import { memoryStore, type Store } from '@iris/store';
import { type Chance, chance } from '../chance.js';
import type { Logged } from '../checks/index.js';
import type { AnyFrame } from '../frames.js';
import type { ProcessClock, Timeline } from '../timeline.js';
import { brokenOutbox, brokenStore } from './breaks.js';
import type { Break, Faults } from './faults.js';
import { type Passage, passage, through } from './passage.js';

/** What all processes of a world share, and how it fails. */
export interface Backbone {
  /** Everything that a process of the product is given, on a clock that can be killed. */
  join(name: string, part: Part): Node;
  /** The store as it is, for tests to look at and to fill. */
  readonly store: Store;
  readonly outbox: ReturnType<typeof memoryOutbox>;
  readonly media: MediaStore;
  readonly jobs: ReturnType<typeof memoryJobs>;
  /** Every frame that was appended, by tenant, in order. */
  readonly logs: ReadonlyMap<string, readonly Logged[]>;
  /** May be changed at any time. */
  faults: Faults;
  /** Every call to the store fails. */
  failStore: boolean;
  /** What is appended to a file finds no room any more: what may wait for a slow storage is all taken. */
  mediaFull: boolean;
  /** Looks at what crosses the bus; false loses it. */
  onBus?: (delivery: { subject: string; from: string; to: string; kind: string }) => boolean;
  /** Hears every call that a process makes to the store or the outbox. */
  onCall?: (call: { from: string; to: 'store' | 'outbox'; name: string }) => void;
  /** Hears everything that a process says on the bus, before anything happens to it. */
  onSaid?: (said: { from: string; kind: 'publish' | 'request'; subject: string; data: Uint8Array }) => void;
}
export type Part = 'edge' | 'session' | 'worker' | 'net';

export interface Node {
  readonly name: string;
  readonly clock: ProcessClock;
  readonly bus: Bus;
  readonly outbox: Outbox;
  readonly store: Store;
  readonly media: MediaStore;
  readonly jobs: Jobs;
  readonly chance: Chance;
  /** Its connection to the broker. */
  setConnected(connected: boolean): void;
  /** SIGKILL: its code never runs again; what it had sent is under way. */
  kill(): void;
}

export function backbone(time: Timeline, seed: number, faults: Faults, breaks: ReadonlySet<Break>): Backbone {
  const dice = chance(seed).fork('backbone');
  const net = time.process('net');
  const nodes = new Map<string, Node>();
  const logs = new Map<string, Logged[]>();
  const store = memoryStore();
  const outbox = memoryOutbox({ clock: net });
  const media = memoryMedia({ clock: net });
  const jobs = memoryJobs({ clock: net });
  const draw = ([low, high]: readonly [number, number]) => (high === 0 ? 0 : dice.between(low, high));
  /** When the last message of a pair arrives: others do not overtake it by chance. */
  const arrivals = new Map<string, number>();

  const hub = memoryHub({
    clock: net,
    poison: true,
    deliver(delivery) {
      const { from, to, run } = delivery;
      const clock = nodes.get(to)?.clock;
      if (clock === undefined || self.onBus?.(delivery) === false) return;
      const arrive = (ms: number) => (ms <= 0 ? clock.soon(run) : void net.after(ms, () => clock.soon(run)));
      if (dice.happens(self.faults.bus_drop)) return;
      const pair = `${from}\n${to}`;
      const due = Math.max(net.now() + draw(self.faults.bus_ms), arrivals.get(pair) ?? 0);
      if (dice.happens(self.faults.bus_reorder)) return arrive(draw(self.faults.bus_late_ms));
      arrivals.set(pair, due);
      arrive(due - net.now());
      if (dice.happens(self.faults.bus_repeat)) arrive(due - net.now() + draw(self.faults.bus_late_ms));
    },
  });

  const logged = (target: Outbox): Outbox => ({
    ...target,
    get connected() {
      return target.connected;
    },
    async append(batches) {
      const results = await target.append(batches);
      results.forEach((result, i) => {
        const { tenant_id, frames } = batches[i]!;
        if (result.refused !== undefined) return;
        const log = logs.get(tenant_id) ?? [];
        logs.set(tenant_id, log);
        result.cursors.forEach((cursor, j) => {
          const frame = frames[j]!;
          if (!result.fresh[j]) return;
          const except = frame.except_device_id === undefined ? {} : { except_device_id: frame.except_device_id as string };
          log.push({ at: net.now(), cursor, frame: JSON.parse(new TextDecoder().decode(frame.body)) as AnyFrame, ...except });
        });
      });
      return results;
    },
  });

  const self: Backbone = {
    store,
    outbox,
    media,
    jobs,
    logs,
    faults,
    failStore: false,
    mediaFull: false,
    join(name, part) {
      const queue = jobs.connect();
      const clock = time.process(name);
      const own = chance(seed).fork(name);
      const way = (range: () => readonly [number, number], in_order: boolean): Passage =>
        passage({ process: clock, net, delay_ms: () => draw(range()), in_order, arrives_dead: () => dice.happens(0.5) });
      const heard = (to: 'store' | 'outbox', { pass }: Passage): Passage => ({
        pass(call, run) {
          self.onCall?.({ from: name, to, name: call });
          return pass(call, run);
        },
      });
      const outboxWay = heard(
        'outbox',
        way(() => self.faults.outbox_ms, true),
      );
      const failing = ({ pass }: Passage): Passage => ({
        pass: (call, run) =>
          pass(call, () => {
            if (!self.failStore) return run();
            // As the real one does, it says so itself.
            return call === 'ready' ? Promise.resolve(false as never) : Promise.reject(new Error('the store cannot be reached'));
          }),
      });
      const bus = hub.connect(name);
      const filling = ({ pass }: Passage): Passage => ({
        pass: (call, run) =>
          pass(call, () => (self.mediaFull && call === 'append' ? Promise.reject(new NoRoom('too much waits already')) : run())),
      });
      const node: Node = {
        name,
        clock,
        chance: own,
        bus: guardedBus(breaks.has('stale_updates') && part === 'edge' ? staleUpdates(bus, net) : bus, clock, (said) =>
          self.onSaid?.(said),
        ),
        outbox: guardedOutbox(
          through(brokenOutbox(logged(outbox.connect()), breaks, part), outboxWay, ['onReconnected', 'connected', 'close']),
          clock,
        ),
        store: through(brokenStore(store, breaks), heard('store', failing(way(() => self.faults.store_ms, false)))),
        media: slowWriters(through(media, failing(way(() => self.faults.store_ms, false))), (writer) =>
          through(writer, filling(failing(way(() => self.faults.media_ms, true))), ['appendNow']),
        ),
        jobs: queue,
        setConnected: (connected) => bus.setConnected(connected),
        kill() {
          clock.kill();
          nodes.delete(name);
          queue.die();
          bus.setConnected(false);
        },
      };
      nodes.set(name, node);
      return node;
    },
  };
  return self;
}

/** What writes a file is slow, or not there, by itself: opening one is asked of the store, what follows of its writer. */
const slowWriters = (media: MediaStore, slow: (writer: MediaWriter) => MediaWriter): MediaStore => ({
  ...media,
  open: async (...given) => slow(await media.open(...given)),
  async resume(...given) {
    const kept = await media.resume(...given);
    return kept && { ...kept, writer: slow(kept.writer) };
  },
});

/** Nothing of a dead process is called, and what it asks for never comes. */
function guardedBus(bus: Bus, clock: ProcessClock, said: NonNullable<Backbone['onSaid']>): Bus {
  return {
    publish(subject, data) {
      if (!clock.alive) return;
      said({ from: clock.name, kind: 'publish', subject, data });
      bus.publish(subject, data);
    },
    subscribe: (subject, handler) => bus.subscribe(subject, (data) => clock.alive && handler(data)),
    serve: (subject, handler) => bus.serve(subject, (data) => handler(data)),
    request: (subject, data, options) =>
      new Promise((resolve, reject) => {
        if (!clock.alive) return;
        said({ from: clock.name, kind: 'request', subject, data });
        bus.request(subject, data, options).then(
          (answer) => clock.soon(() => resolve(answer)),
          (error: unknown) => clock.soon(() => reject(error as Error)),
        );
      }),
    flush: () => bus.flush(),
    get connected() {
      return bus.connected;
    },
    onConnected: (listener) => bus.onConnected((connected) => clock.alive && clock.soon(() => listener(connected))),
    close: () => bus.close(),
  };
}

function guardedOutbox(outbox: Outbox, clock: ProcessClock): Outbox {
  return new Proxy(outbox, {
    get(target, property): unknown {
      if (property === 'onReconnected') return (listener: () => void) => target.onReconnected(() => clock.alive && clock.soon(listener));
      return Reflect.get(target, property, target) as unknown;
    },
  });
}

/** The break of that name: every ephemeral frame arrives once more, a second later, newer than all others. */
function staleUpdates(bus: Bus, net: ProcessClock): Bus {
  return {
    ...bus,
    get connected() {
      return bus.connected;
    },
    subscribe: (subject, handler) =>
      bus.subscribe(subject, (data) => {
        handler(data);
        if (!subject.startsWith('iris.edge.')) return;
        for (const record of unpack<ToEdge>(data)) {
          if (record.kind !== 'ephemeral') continue;
          const { message_id: _, ...rest } = record;
          const again = pack([{ ...rest, after: 0, key: `stale ${record.key}`, rev: record.rev + 1_000_000, body: record.body.slice() }]);
          net.after(1_000, () => handler(again));
        }
      }),
  };
}
