import { announceSession, type Bus, type Control, ownerOf, subjects, watchSessions } from '@iris/bus';
import type { Jobs } from '@iris/jobs';
import type { Outbox } from '@iris/outbox';
import { OutboxUnavailable } from '@iris/outbox';
import { type Quotas, Quotas as QuotasSchema, type SessionId, type TenantId } from '@iris/protocol';
import type { Clock, Log, Meter, Random } from '@iris/runtime';
import type { Store } from '@iris/store';
import { createLinks } from './agent/links.js';
import { createRooms } from './agent/room.js';
import { createSilence } from './agent/silence.js';
import { startSweep } from './agent/sweep.js';
import { createTurns } from './agent/turns.js';
import { createAppender } from './append.js';
import type { SessionConfig } from './config.js';
import type { Context } from './context.js';
import { cursorMarks } from './cursor-marks.js';
import { createDirectory } from './directory.js';
import { createEmitter } from './emit.js';
import { mediaReady } from './media/ready.js';
import { createOutgoing } from './outgoing.js';
import { createPatience } from './patience.js';
import { createPresence } from './presence.js';
import { createPushes } from './pushes.js';
import { rates } from './rates.js';
import { createReads } from './reads.js';
import { createServe } from './serve.js';

export interface SessionDeps {
  readonly bus: Bus;
  readonly outbox: Outbox;
  readonly store: Store;
  readonly jobs: Jobs;
  readonly clock: Clock;
  readonly log: Log;
  readonly meter: Meter;
  /** Jitter. */
  readonly random: Random;
  readonly session_id: SessionId;
}

/** One instance of the session service. It keeps no truth: kill it, and another goes on from the stores. */
export interface Session {
  readonly session_id: SessionId;
  /** Serves and says so; resolves when requests may come. */
  start(): Promise<void>;
  /**
   * Withdraws its announcement, finishes what it holds, and ends by the deadline; what is not finished by then is asked of another.
   * @param options.within_ms default 10 s
   */
  stop(options?: { within_ms: number }): Promise<void>;
  /** Serves, and what it needs can be reached. */
  ready(): boolean;
}

const stop_ms = 10_000;
/** Edges that have not heard the goodbye yet still send here. */
const goodbye_ms = 300;
const readyCheck_ms = 1_000;
const poll_ms = 20;
const text = new TextDecoder();

export function createSession(deps: SessionDeps, config: SessionConfig): Session {
  const { bus, outbox, store, jobs, clock, log, meter, session_id } = deps;
  let state: 'new' | 'serving' | 'leaving' | 'ended' = 'new';
  let storeWorks = true;
  /** What fails from now on is left to another instance. */
  let overdue = false;
  let instances = 0;
  const ends: (() => void)[] = [];

  const outgoing = createOutgoing({ bus, clock, log, meter });
  const directory = createDirectory({
    store,
    bus,
    clock,
    quotas: defaultQuotasOf(config),
    cache_ms: config.cache_ms,
    idle_ms: config.idle_ms,
  });
  const patience = createPatience({
    clock,
    random: deps.random,
    retry_ms: config.retry_ms,
    // What the outbox calls unavailable is worth another try whatever else works.
    works: async (error) => !(error instanceof OutboxUnavailable) && outbox.connected && (await store.ready()),
    failed: (what, error) => log.warn('session.tried_again', { what, error }),
  });
  const rooms = createRooms({ store, outbox, clock, log });
  const links = createLinks({ store, directory, outgoing, clock, log });
  const presence = createPresence({ outbox });
  const watch = watchSessions({ bus, clock });
  ends.push(watch.onChange(() => instances++));
  const appender = createAppender({
    outbox,
    tenants: store.tenants,
    clock,
    meter,
    patience,
    cursor_block: config.cursor_block,
    maxFrames: async (tenant_id) => (await directory.tenant(tenant_id))?.quotas.outbox_max_frames ?? config.outbox_max_frames,
    alone: (tenant_id) => (ownerOf(tenant_id, watch.live) === session_id ? instances : undefined),
    weightOf: directory.weightOf,
    onSeeded(tenant_id) {
      log.warn('session.outbox_lost', { tenant_id });
      links.recall(tenant_id).catch((error: unknown) => log.warn('session.recall_failed', { tenant_id, error }));
      return rooms.values(tenant_id);
    },
  });
  const emitter = createEmitter({
    store,
    outbox,
    clock,
    log,
    meter,
    outgoing,
    appender,
    patience,
    marks: cursorMarks({ messages: store.messages, clock, log }),
    pushes: createPushes(
      { store, outbox, jobs, clock, log, patience },
      { on: config.push_providers.length > 0, delay_ms: config.push_delay_ms },
    ),
    idle_ms: config.idle_ms,
    weightOf: directory.weightOf,
    toAgents: (tenant_id, agent) => links.send(tenant_id, agent),
    onLost(tenant_id: TenantId) {
      rooms.forget(tenant_id);
      jobs
        .enqueue('upkeep.repair', { tenant_id }, { id: tenant_id })
        .catch((error: unknown) => log.warn('session.repair_not_asked', { tenant_id, error }));
    },
  });
  const context: Context = {
    store,
    clock,
    log,
    config,
    directory,
    emitter,
    presence,
    rooms,
    links,
    turns: createTurns(() => context),
    silence: createSilence({
      clock,
      log,
      meter,
      silence_ms: config.turn_silence_ms,
      settle_ms: config.settle_ms,
      put: (tenant_id, values) => emitter.put(tenant_id, values),
    }),
    reads: createReads(() => context),
    mediaReady: mediaReady({ store, jobs, clock, log, session_id, weightOf: directory.weightOf }),
    rates: rates(clock),
  };
  const sweep = startSweep({ context, session_id, watch, busConnected: () => bus.connected });
  const serve = createServe({
    context,
    outgoing,
    meter,
    patience,
    stopping: () => overdue,
    heard: (tenant_id) => sweep.heard(tenant_id),
  });
  ends.push(
    () => sweep.stop(),
    () => context.silence.stop(),
    () => serve.stop(),
    () => watch.end(),
    () => directory.close(),
    () => context.turns.close(),
    meter.gauge('iris_session_turns_open', () => [...rooms.all()].reduce((sum, [, { turns }]) => sum + turns.size, 0)),
  );

  const onControl = (control: Control) => {
    if (control.kind === 'changed') {
      directory.drop(control.tenant_id, control.what);
      if (control.what === 'agents') links.stale(control.tenant_id);
    } else if (control.kind === 'rerouted') {
      directory.drop(control.tenant_id, 'channels');
      directory.drop(control.tenant_id, 'agents');
      links.stale(control.tenant_id);
      if (ownerOf(control.tenant_id, watch.live) === session_id) context.turns.rerouted(control.tenant_id);
    } else if (control.kind === 'revoked') directory.drop(control.tenant_id, 'tokens');
  };

  /** What `start` began, in order: stopped first, before the parts that it leans on. */
  const begun: (() => void)[] = [];

  return {
    session_id,
    async start() {
      const served = bus.serve(subjects.session(session_id), (data) => serve.accept(data));
      const heard = bus.subscribe(subjects.control, (data) => onControl(JSON.parse(text.decode(data)) as Control));
      const ready = bus.subscribe(subjects.mediaReady(session_id), (data) =>
        context.mediaReady.heard(JSON.parse(text.decode(data)) as Parameters<typeof context.mediaReady.heard>[0]),
      );
      const look = async () => {
        storeWorks = await store.ready().catch(() => false);
      };
      const looking = clock.every(readyCheck_ms, () => void look());
      void look();
      await bus.flush();
      const announcer = announceSession({ bus, clock, session_id });
      begun.push(
        () => announcer.leave(),
        () => served.end(),
        () => heard.end(),
        () => ready.end(),
        () => looking.cancel(),
      );
      state = 'serving';
      log.info('session.serving', { session_id });
    },
    async stop({ within_ms } = { within_ms: stop_ms }) {
      if (state === 'leaving' || state === 'ended') return;
      const served = state === 'serving';
      state = 'leaving';
      const deadline = clock.now() + within_ms;
      begun.shift()?.();
      if (served) {
        await patience.pause(Math.min(goodbye_ms, within_ms));
        while (clock.now() < deadline - goodbye_ms && !(serve.idle && emitter.idle)) await patience.pause(poll_ms);
      }
      for (const end of begun) end();
      overdue = true;
      await emitter.stop();
      for (const end of ends) end();
      outgoing.flush();
      await bus.flush().catch((error: unknown) => log.warn('session.flush_failed', { error }));
      state = 'ended';
    },
    ready: () => state === 'serving' && storeWorks && bus.connected && outbox.connected,
  };
}

const defaultQuotasOf = (config: SessionConfig): Quotas =>
  Object.fromEntries(Object.keys(QuotasSchema.properties).map((name) => [name, config[name as keyof Quotas]])) as Quotas;
