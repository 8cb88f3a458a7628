import { durableRecords, type ToEdge } from '@iris/bus';
import type { Outbox } from '@iris/outbox';
import type { Cursor, TenantId } from '@iris/protocol';
import type { Clock, Log, Meter } from '@iris/runtime';
import type { Store } from '@iris/store';
import type { Appender, Route } from './append.js';
import { batchSize, type Waiting } from './batch.js';
import type { CursorMarks } from './cursor-marks.js';
import type { Effects, Emitter, LiveFrame, Origin, OutFrame, Placed } from './emission.js';
import type { Outgoing } from './outgoing.js';
import { type Patience, Unavailable } from './patience.js';
import { createPersist } from './persist.js';
import type { Pushes } from './pushes.js';
import { liveRecord } from './rules/live-record.js';

interface Queue {
  readonly route: Route;
  waiting: Waiting[];
  running: boolean;
  /** When it last had anything to do. */
  usedAt: number;
}

/** Edges named by an answer this old may not be all there are: ask before showing something live. */
const routeFresh_ms = 2_000;

/**
 * The only exit. Per tenant, in the order of arrival: store (the truth) → outbox (the order, and who listens) → publish → jobs.
 * One batch of a tenant is under way at a time; the store and outbox calls of all tenants' batches of a tick are one call each.
 * A crash after any step is repaired from the step before: the same request comes again with the same key, or the upkeep
 * job appends what the store has without a place.
 */
export function createEmitter(deps: {
  store: Store;
  outbox: Outbox;
  clock: Clock;
  log: Log;
  meter: Meter;
  outgoing: Outgoing;
  appender: Appender;
  patience: Patience;
  marks: CursorMarks;
  pushes: Pushes;
  idle_ms: number;
  weightOf: (tenant_id: TenantId) => number;
  /** Stored frames for an agent's link. */
  toAgents: (tenant_id: TenantId, agent: NonNullable<Effects['agent']>) => void;
  /** Effects were stored and could not be appended: what is in memory of the tenant is ahead of the truth. */
  onLost: (tenant_id: TenantId) => void;
}): Emitter {
  const { outbox, clock, log, outgoing, patience, marks } = deps;
  const queues = new Map<TenantId, Queue>();
  const seconds = deps.meter.histogram('iris_session_emit_seconds');
  const sizes = deps.meter.histogram('iris_session_emit_frames');
  let dirty: Queue[] = [];

  const queueOf = (tenant_id: TenantId): Queue => {
    let queue = queues.get(tenant_id);
    if (queue === undefined) {
      const route: Route = { tenant_id, head: 0, edges: new Set(), at: 0, alone: undefined };
      queue = { route, waiting: [], running: false, usedAt: clock.now() };
      queues.set(tenant_id, queue);
    }
    return queue;
  };

  const persist = createPersist({
    store: deps.store,
    outbox,
    appender: deps.appender,
    patience,
    clock,
    routeOf: (tenant_id) => queueOf(tenant_id).route,
    weightOf: deps.weightOf,
  });

  const publish = (route: Route, records: readonly Parameters<Outgoing['to']>[1][]) => {
    for (const edge_id of route.edges) for (const record of records) outgoing.to(edge_id, record);
  };
  /** @param after the cursor behind which they belong; more of the tenant may be placed already, and come behind them */
  const show = (route: Route, frames: readonly LiveFrame[], after: Cursor = route.head) => {
    for (const frame of frames) {
      const record = liveRecord(route.tenant_id, after, frame);
      if (frame.to !== undefined) outgoing.to(frame.to.edge_id, record);
      else publish(route, [record]);
    }
  };

  const answer = ({ edge_id, connection_id, n }: Origin, cursor: Cursor | undefined, body: Uint8Array) =>
    outgoing.to(edge_id, { kind: 'answer', connection_id, n, ...(cursor === undefined ? {} : { cursor }), body });
  /** What one emission has to say, all of it behind what the one before it had. Returns the cursor that it has got to. */
  const say = (route: Route, effects: Effects, places: Iterator<Placed>, fresh: Iterator<ToEdge>, from: Cursor): Cursor => {
    let head = from;
    for (const frame of effects.frames ?? []) {
      const place = places.next().value as Placed;
      head = Math.max(head, place.cursor);
      if (frame.places !== undefined) marks.add(route.tenant_id, frame.places, place.cursor);
      if (place.fresh) publish(route, [fresh.next().value as ToEdge]);
      // It stood there before: whoever asks again is told where, and what.
      else if (frame.origin !== undefined) answer(frame.origin, place.cursor, place.body);
    }
    if (effects.answer !== undefined) answer(effects.answer.to, effects.answer.cursor, effects.answer.body);
    show(route, effects.live ?? [], head);
    if (effects.agent !== undefined) deps.toAgents(route.tenant_id, effects.agent);
    for (const { edge_id, ...close } of effects.close ?? []) outgoing.to(edge_id, { kind: 'close', ...close, body: nothing });
    return head;
  };

  const run = async (queue: Queue, batch: readonly Waiting[]): Promise<void> => {
    const { route } = queue;
    const begun = clock.now();
    const done = await persist(batch);
    const frames: OutFrame[] = done.flatMap(({ effects }) => effects.frames ?? []);
    const values = Object.fromEntries(done.flatMap(({ effects }) => Object.entries(effects.values ?? {})));
    let placed: readonly Placed[] = [];
    let records: readonly ToEdge[] = [];
    let { head } = route;
    const placedNow = frames.flatMap(({ places }) => places ?? []);
    try {
      for (const { effects } of done)
        for (const what of effects.forget ?? []) await patience.persist(() => outbox.forget(route.tenant_id, what), { what: 'forget' });
      const before = done.flatMap(({ effects }) => effects.before ?? []);
      show(route, before);
      if (frames.length > 0) {
        const marking = deps.pushes.before(route.tenant_id, frames);
        if (marking !== undefined) await marking;
        const appended = await deps.appender.append(route, frames, values);
        placed = frames.map(({ body }, i) => ({ cursor: appended.cursors[i]!, fresh: appended.fresh[i]!, body }));
        records = durableRecords(route.tenant_id, frames, appended);
      } else if (Object.keys(values).length > 0) await patience.persist(() => outbox.put(route.tenant_id, values), { what: 'put' });
      for (const { effects } of done) if (effects.settle) await patience.persist(effects.settle, { what: 'settle' });
      const places = placed.values();
      const fresh = records.values();
      for (const { effects } of done) head = say(route, effects, places, fresh, head);
      if (frames.length > 0)
        await deps.pushes.told(
          route.tenant_id,
          frames.map((frame, i) => ({ frame, cursor: placed[i]!.cursor })),
        );
      // Behind the note of a push: who finds the message in its place says nothing of it again.
      marks.release(placedNow, true);
      for (const { effects } of done) if (effects.after) await patience.persist(effects.after, { what: 'after' });
      const dropped = done.flatMap(({ effects }) => effects.drop ?? []).map((name) => [name, null] as const);
      if (dropped.length > 0) await patience.persist(() => outbox.put(route.tenant_id, Object.fromEntries(dropped)), { what: 'put' });
    } catch (error) {
      log.error('session.emission_lost', { tenant_id: route.tenant_id, frames: frames.length, error });
      marks.release(placedNow, false);
      deps.onLost(route.tenant_id);
      for (const { waiting } of done) waiting.reject(new Unavailable('not appended', { cause: error }));
      return;
    }
    let at = 0;
    for (const { waiting, effects } of done) {
      const count = effects.frames?.length ?? 0;
      waiting.resolve(placed.slice(at, at + count));
      at += count;
    }
    seconds.record((clock.now() - begun) / 1_000);
    sizes.record(frames.length);
  };

  const pump = async (queue: Queue): Promise<void> => {
    if (queue.running) return;
    queue.running = true;
    while (queue.waiting.length > 0) {
      const size = batchSize(queue.waiting);
      const batch = queue.waiting.slice(0, size);
      queue.waiting = queue.waiting.slice(size);
      await run(queue, batch);
    }
    queue.running = false;
    queue.usedAt = clock.now();
  };

  const sweep = clock.every(deps.idle_ms, () => {
    for (const [tenant_id, queue] of queues)
      if (!queue.running && queue.waiting.length === 0 && queue.usedAt < clock.now() - deps.idle_ms) queues.delete(tenant_id);
  });

  return {
    emit(emission) {
      const queue = queueOf(emission.tenant_id);
      return new Promise((resolve, reject) => {
        queue.waiting.push({ emission, resolve, reject });
        if (queue.running) return;
        if (dirty.length === 0)
          clock.soon(() => {
            const now = dirty;
            dirty = [];
            for (const one of now) void pump(one);
          });
        dirty.push(queue);
      });
    },
    live(tenant_id, frames) {
      const queue = queueOf(tenant_id);
      queue.usedAt = clock.now();
      const { route } = queue;
      if (route.at > clock.now() - routeFresh_ms || frames.every(({ to }) => to !== undefined)) return show(route, frames);
      // An append of nothing says who listens now. Asked in front of the frame only when nobody ever said.
      const known = route.at > 0;
      route.at = clock.now();
      if (known) show(route, frames);
      outbox.append([{ tenant_id, frames: [], max_frames: Number.MAX_SAFE_INTEGER }]).then(
        ([answer]) => {
          if (answer?.refused === undefined && answer !== undefined) {
            route.edges = new Set(answer.edges);
            route.head = Math.max(route.head, answer.previous);
          }
          if (!known) show(route, frames);
        },
        () => {},
      );
    },
    put(tenant_id, values) {
      outbox.put(tenant_id, values).catch((error: unknown) => log.debug('session.value_not_put', { tenant_id, error }));
    },
    value: async (tenant_id, name) => (await outbox.values(tenant_id)).get(name),
    async connections(tenant_id) {
      return (await outbox.devices(tenant_id)).flatMap(({ device_id, connection_id }) => (connection_id === undefined ? [] : [device_id]));
    },
    placeOf: (message_id) => marks.of(message_id),
    headOf: (tenant_id) => queues.get(tenant_id)?.route.head ?? 0,
    get idle() {
      return [...queues.values()].every((queue) => !queue.running && queue.waiting.length === 0);
    },
    async stop() {
      sweep.cancel();
      patience.giveUp();
      for (const queue of queues.values()) while (queue.running) await patience.pause(1);
      await marks.flush();
    },
  };
}

const nothing = new Uint8Array();
