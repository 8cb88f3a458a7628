import type { EdgeStats } from '@iris/edge';
import type { EdgeId, Quotas, SessionId } from '@iris/protocol';
import type { Store } from '@iris/store';
import { type Chance, chance } from '../chance.js';
import type { Evidence, Logged } from '../checks/index.js';
import { pushEvidence } from '../push/evidence.js';
import { type Fakes, fakes, worldHttp } from '../push/fakes.js';
import type { Patience } from '../record.js';
import { type TestAgent, type TestAgentOptions, testAgent } from '../test-agent.js';
import { type TestDevice, testDevice } from '../test-device.js';
import { type ProcessClock, type Timeline, timeline } from '../timeline.js';
import type { Dial } from '../wire.js';
import { type Backbone, backbone, type Node } from './backbone.js';
import { type EventLog, eventLog } from './event-log.js';
import { type Break, type Faults, noFaults } from './faults.js';
import { type EdgeLinks, edgeLinks } from './links.js';
import { startEdgePart, startSessionPart, startWorkerPart } from './parts.js';
import { historiesOf, makeTenant, type Tenancy } from './tenant.js';

export interface WorldOptions {
  /** Default 1. The same seed and the same calls give the same run. */
  readonly seed?: number;
  /** Whether the seed also decides who runs first when several could; by default, who could first. */
  readonly shuffle?: boolean;
  /** Waiting lets no time pass: only `advance` does. */
  readonly held?: boolean;
  readonly edges?: number;
  readonly sessions?: number;
  /** Default 1. */
  readonly workers?: number;
  readonly faults?: Partial<Faults>;
  readonly breaks?: readonly Break[];
  readonly edge_config?: Record<string, unknown>;
  readonly session_config?: Record<string, unknown>;
  readonly worker_config?: Record<string, unknown>;
  /** Pushes are on, and go to {@link World.fakes}. */
  readonly push?: boolean;
  /** Bytes that a client's kernel takes while it does not read. Default 64 KiB. */
  readonly window_bytes?: number;
}

/** A process of the world. */
export interface Member {
  readonly name: string;
  readonly node: Node;
  readonly alive: boolean;
  /** As SIGKILL. */
  kill(): void;
  /** As SIGTERM: resolves when it has ended by itself. */
  stop(): Promise<void>;
}
export interface EdgeMember extends Member {
  readonly links: EdgeLinks;
  /** `POST /push/answer`, as JSON. */
  answerPush(body: unknown): Promise<{ readonly status: number; readonly body: Record<string, unknown> }>;
  /** What it holds. */
  stats(): EdgeStats;
}

export interface World {
  readonly seed: number;
  readonly chance: Chance;
  readonly time: Timeline;
  readonly patience: Patience;
  readonly backbone: Backbone;
  readonly store: Store;
  /** Providers of pushes, when they are on. */
  readonly fakes: Fakes;
  /** Dead ones too, in order of their start. */
  readonly edges: readonly EdgeMember[];
  readonly sessions: readonly Member[];
  readonly workers: readonly Member[];
  /** What the parts logged as warnings and errors. */
  readonly events: EventLog;
  startEdge(): Promise<EdgeMember>;
  startSession(): Promise<Member>;
  startWorker(): Promise<Member>;
  tenant(quotas?: Partial<Quotas>): Promise<WorldTenant>;
  settle(): Promise<void>;
  advance(ms: number): Promise<void>;
  /** A clock for what the test does by itself, on the world's time. */
  clock(name: string): ProcessClock;
  /** Redis is away for `down_ms`, and comes back empty: the outbox and the queue. */
  loseOutbox(down_ms: number): void;
  /** The outbox is away for so long, and comes back with all that it had. */
  restartOutbox(down_ms: number): void;
  /** NATS is away for `down_ms`; what is said meanwhile is lost. */
  loseBus(down_ms: number): void;
  /** Everything in good order. */
  stop(): Promise<void>;
}

export interface WorldTenant extends Tenancy {
  readonly log: readonly Logged[];
  /** A device; `edge` is the index of the edge it dials, default the first one alive. */
  device(name: string, options?: { edge?: number; caps?: Record<string, unknown>; token?: string; address?: string }): TestDevice;
  /** `device`, `connect` and `hello`. */
  join(name: string, options?: { edge?: number; caps?: Record<string, unknown> }): Promise<TestDevice>;
  agent(options?: Partial<TestAgentOptions> & { edge?: number; token?: string }): TestAgent;
  /** What {@link check} needs: histories are asked by the first device that is connected. */
  evidence(more?: { lossy?: boolean }): Promise<Evidence>;
}

/** N edges and M session instances in one process, on memory adapters and virtual time. */
export async function makeWorld(options: WorldOptions = {}): Promise<World> {
  const seed = options.seed ?? 1;
  const dice = chance(seed);
  const time = timeline({ ...(options.shuffle ? { shuffle: dice.fork('order') } : {}), held: options.held === true });
  const breaks = new Set(options.breaks);
  const base = backbone(time, seed, { ...noFaults, ...options.faults }, breaks);
  const net = time.process('sockets');
  const clients = time.process('clients');
  const providers = fakes(time.process('providers'), 'https://providers.test');
  const push_config = options.push ? providers.settings : {};
  const edges: EdgeMember[] = [];
  const sessions: Member[] = [];
  const workers: Member[] = [];
  const events = eventLog(time);
  let tenants = 0;

  const patience: Patience = {
    now: time.now,
    stir: time.stir,
    async wait(found, { within_ms = 15_000, describe }) {
      const value = await time.until(found, within_ms);
      if (value === undefined) throw new Error(`nothing within ${within_ms} ms of virtual time: ${describe()}${events.tail()}`);
      return value;
    },
  };
  const member = (name: string, node: Node, stop: () => Promise<void>, gone: () => void): Member => ({
    name,
    node,
    get alive() {
      return node.clock.alive;
    },
    kill() {
      if (!node.clock.alive) return;
      node.kill();
      gone();
    },
    async stop() {
      if (!node.clock.alive) return;
      let stopped = false;
      void stop().then(() => {
        stopped = true;
      });
      await patience.wait(() => stopped || undefined, { within_ms: 60_000, describe: () => `${name} does not stop` });
      node.kill();
      gone();
    },
  });

  const self: World = {
    seed,
    chance: dice,
    time,
    patience,
    backbone: base,
    store: base.store,
    fakes: providers,
    edges,
    sessions,
    workers,
    events,
    async startEdge() {
      const name = `edge-${edges.length + 1}`;
      const node = base.join(name, 'edge');
      const links = edgeLinks({
        edge: node.clock,
        net,
        clients,
        chance: dice.fork(`sockets of ${name}`),
        delay_ms: () => base.faults.socket_ms,
        window_bytes: options.window_bytes ?? 64 * 1024,
        breaks,
        accept: (socket, opening) => part.accept(socket, opening),
      });
      const starting = startEdgePart({
        edge_id: name as EdgeId,
        node,
        groups: links.pairs,
        log: events.of(name),
        config: options.edge_config ?? {},
      });
      const part = await arrived(starting, name);
      const edge = {
        ...member(name, node, part.stop, () => links.pairs.kill()),
        links,
        stats: part.stats,
        async answerPush(body: unknown) {
          const reply = await driven(time, part.answerPush(JSON.stringify(body), '127.0.0.1'));
          return { status: reply.status, body: JSON.parse(reply.body) as Record<string, unknown> };
        },
      };
      Object.defineProperty(edge, 'alive', { get: () => node.clock.alive });
      edges.push(edge);
      return edge;
    },
    async startSession() {
      const name = `session-${sessions.length + 1}`;
      const node = base.join(name, 'session');
      const starting = startSessionPart({
        session_id: name as SessionId,
        node,
        log: events.of(name),
        config: { ...push_config, ...options.session_config },
      });
      const part = await arrived(starting, name);
      const session = member(name, node, part.stop, () => {});
      sessions.push(session);
      return session;
    },
    async startWorker() {
      const name = `worker-${workers.length + 1}`;
      const node = base.join(name, 'worker');
      const http = worldHttp({ fakes: providers, process: node.clock, net, way_ms: () => 5 });
      const config = { ...push_config, ...options.worker_config };
      const part = await arrived(startWorkerPart({ node, log: events.of(name), config, http }), name);
      const worker = member(name, node, part.stop, () => {});
      workers.push(worker);
      return worker;
    },
    async tenant(quotas) {
      const tenancy = await makeTenant(base.store, `tenant${++tenants}`, { at: time.now(), ...(quotas ? { quotas } : {}) });
      return worldTenant(self, tenancy);
    },
    settle: () => time.settle(),
    advance: (ms) => time.advance(ms),
    clock: (name) => time.process(name),
    loseOutbox(down_ms) {
      base.outbox.setConnected(false);
      net.after(down_ms, () => {
        base.outbox.forgetEverything();
        base.jobs.forgetEverything();
        base.outbox.setConnected(true);
      });
    },
    restartOutbox(down_ms) {
      base.outbox.setConnected(false);
      net.after(down_ms, () => {
        base.outbox.restart();
        base.outbox.setConnected(true);
      });
    },
    loseBus(down_ms) {
      const cut = [...edges, ...sessions].filter(({ alive }) => alive);
      for (const { node } of cut) node.setConnected(false);
      net.after(down_ms, () => {
        for (const { node, alive } of cut) if (alive) node.setConnected(true);
      });
    },
    async stop() {
      await Promise.all(edges.map((edge) => edge.stop()));
      await Promise.all([...sessions, ...workers].map((one) => one.stop()));
    },
  };
  /** Parts start on the world's time, too. */
  const arrived = async <T>(starting: Promise<T>, name: string): Promise<T> => {
    let outcome: { value: T } | { error: unknown } | undefined;
    void starting.then(
      (value) => {
        outcome = { value };
      },
      (error: unknown) => {
        outcome = { error };
      },
    );
    const done = await patience.wait(() => outcome, { within_ms: 30_000, describe: () => `${name} does not start` });
    if ('error' in done) throw done.error;
    return done.value;
  };
  // Held time does not pass by waiting, and starting takes some.
  const started = (starting: Promise<unknown>) => Promise.all([starting, options.held === true ? self.advance(50) : undefined]);
  for (let i = 0; i < (options.sessions ?? 2); i++) await started(self.startSession());
  for (let i = 0; i < (options.workers ?? 1); i++) await driven(time, self.startWorker());
  for (let i = 0; i < (options.edges ?? 2); i++) await started(self.startEdge());
  // Until everyone has heard of everyone.
  await self.advance(10);
  return self;
}

/** Lets time pass until it is done, also where waiting alone does not. */
export async function driven<T>(time: Timeline, promise: Promise<T>, within_ms = 60_000): Promise<T> {
  let settled = false;
  const settle = () => {
    settled = true;
  };
  promise.then(settle, settle);
  for (let ms = 0; !settled && ms < within_ms; ms += 10) await time.advance(10);
  if (!settled) throw new Error(`not done within ${within_ms} ms of virtual time`);
  return promise;
}

function worldTenant(world: World, tenancy: Tenancy): WorldTenant {
  const devices: TestDevice[] = [];
  const agents: TestAgent[] = [];
  const dialer = (path: '/ws' | '/agent', edge: number | undefined, more: { token?: string; address?: string }): Dial => {
    return (events) => {
      const chosen = edge === undefined ? world.edges.find(({ alive }) => alive) : world.edges[edge];
      if (chosen === undefined) return Promise.reject(new Error('connection refused'));
      return chosen.links.dial(path, more)(events);
    };
  };
  const self: WorldTenant = {
    ...tenancy,
    get log() {
      return world.backbone.logs.get(tenancy.tenant_id) ?? [];
    },
    device(name, { edge, caps, token = tenancy.device_token, address } = {}) {
      const device = testDevice({
        device_id: name,
        token,
        patience: world.patience,
        dial: dialer('/ws', edge, address === undefined ? {} : { address }),
        ...(caps ? { caps } : {}),
      });
      devices.push(device);
      return device;
    },
    async join(name, how) {
      const device = self.device(name, how);
      const answer = await device.join();
      if (answer.type !== 'hello.ack') throw new Error(`${name}: ${JSON.stringify(answer)}`);
      return device;
    },
    agent({ edge, token, ...more } = {}) {
      const agent = testAgent({
        dial: dialer('/agent', edge, { token: token ?? tenancy.agent_token }),
        patience: world.patience,
        install_id: `install-${agents.length + 1}`,
        // On a line of the test's own, it is said in hello.
        ...(token === undefined || more.dial === undefined ? {} : { token }),
        ...more,
      });
      agents.push(agent);
      return agent;
    },
    async evidence({ lossy = false } = {}) {
      const asking = devices.find(({ connected, connections }) => connected && connections.at(-1)?.ack);
      if (asking === undefined) throw new Error('no device is connected');
      const pushes = await pushEvidence(world.store, world.fakes, tenancy.tenant_id);
      return { devices, agents, log: self.log, histories: await historiesOf(asking), lossy, pushes };
    },
  };
  return self;
}
