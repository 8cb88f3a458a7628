import { type Subscription, subjects } from '@iris/bus';
import { closeCodes, type EdgeId } from '@iris/protocol';
import { systemRandom, type Timer } from '@iris/runtime';
import { admission } from './admission.js';
import { agentClosed, displaced, linksTick } from './agent/deliver.js';
import { receiveAgent } from './agent/inbound.js';
import { AgentLink } from './agent/link.js';
import { pump, stuckTick } from './catch-up.js';
import type { EdgeConfig } from './config.js';
import { pong, pushPingTick, refresh, refreshTick, roundTick, writeMarks } from './confirm.js';
import { DeviceConnection, type Handlers, memberOf } from './connection.js';
import type { EdgeContext, EdgeDeps } from './context.js';
import { control, deliver } from './deliver.js';
import { drain } from './drain.js';
import { checkHeads } from './feed.js';
import { forward } from './forward.js';
import { greetingTick } from './hello.js';
import type { HttpExchange } from './http-exchange.js';
import { receive } from './inbound.js';
import { takesDevices, wasLast } from './last-edge.js';
import { closed } from './leave.js';
import { wakePull } from './local/media-pull.js';
import { slabs } from './local/slabs.js';
import { mediaOverdue } from './media-ask.js';
import { serveMedia } from './media-http.js';
import { metersOf } from './meters.js';
import { overdue } from './overdue.js';
import { pages } from './pages.js';
import { answerPush, type HttpReply } from './push-answer.js';
import { addresses } from './rate-limit.js';
import { relayDoor } from './relay/door.js';
import { seekTick } from './repair.js';
import type { Opening, Socket, SocketEvents } from './socket.js';
import { tick_ms, toTicks } from './ticks.js';

/** Terminates device and agent sockets. Holds no truth: kill it, and its devices go on elsewhere with nothing lost. */
export interface Edge {
  readonly edge_id: EdgeId;
  /** A socket has opened. Safe to call before {@link start} and while draining. */
  accept(socket: Socket, opening: Opening): SocketEvents;
  /** `POST /push/answer`: see push-answer.ts. */
  answerPush(body: string, address: string): Promise<HttpReply>;
  /** A link to a file is followed. */
  file(exchange: HttpExchange): void;
  /** Hear the bus. Resolves when requests of sockets can be answered as soon as a session instance is there. */
  start(): Promise<void>;
  /** Leaves readiness and closes all sockets in waves with 1012; tells devices `status restarting` first when no other edge is there. */
  drain(options: { within_ms: number }): Promise<void>;
  /** Close what is left and let go of bus and timers (which the caller closes). */
  stop(): Promise<void>;
  /** Whether new sockets should come here. */
  ready(): boolean;
  stats(): EdgeStats;
}

export interface EdgeStats {
  readonly devices: number;
  readonly agents: number;
  readonly greeting: number;
  readonly catching_up: number;
  readonly feeds: number;
  readonly in_flight: number;
  /** Connections that are remembered, also closed ones that wait for an answer. */
  readonly known: number;
}

export function createEdge(deps: EdgeDeps, config: EdgeConfig): Edge {
  const { bus, outbox, clock, log, edge_id } = deps;
  const meters = metersOf(deps);
  const time = { tick: 0 };
  const random = deps.random ?? systemRandom;
  const { hellos_per_second, hellos_burst, agent_hellos_per_second, agent_hellos_burst, hello_wait_ms: patience_ms } = config;
  const connections: EdgeContext['connections'] = new Map();
  const edge: EdgeContext = {
    edge_id,
    clock,
    log,
    outbox,
    media: deps.media,
    slabs: slabs(),
    newConnectionId: deps.newConnectionId,
    config,
    meters,
    time,
    connections,
    random,
    groups: deps.groups,
    pages: pages(outbox, config),
    addresses: addresses(config),
    admission: {
      device: admission({ per_second: hellos_per_second, burst: hellos_burst, patience_ms }, random),
      agent: admission({ per_second: agent_hellos_per_second, burst: agent_hellos_burst, patience_ms }, random),
    },
    forward: forward({
      bus,
      clock,
      log,
      edge_id,
      time,
      config,
      resends: meters.resends,
      overdue: (caller, request) => mediaOverdue(edge, caller, request) || overdue(edge, caller.connection_id, request),
      displaced: (caller) => displaced(edge, caller),
      left: (caller) => void connections.delete(caller.connection_id),
    }),
    askers: new Map(),
    answering: new Map(),
    feeds: new Map(),
    seeking: new Set(),
    stuck: new Set(),
    confirmed: new Set(),
    rounds: Array.from({ length: toTicks(config.ping_ms) }, () => new Set()),
    greeting: new Set(),
    links: new Set(),
    trying: new Map(),
    following: new Map(),
    good_tokens: new Set(),
    revoked: [],
    left_buckets: new Map(),
    goodbyes: new Set(),
    draining: false,
  };

  const device: Handlers<DeviceConnection> = {
    message: (connection, data, binary) => receive(edge, connection, data, binary),
    pong: (connection, data) => pong(edge, connection, data),
    drained(connection) {
      pump(edge, connection);
      wakePull(memberOf(connection)?.pulls);
    },
    closed: (connection) => closed(edge, connection),
  };
  const agent: Handlers<AgentLink> = {
    message: (link, data, binary) => receiveAgent(edge, link, data, binary),
    pong(link) {
      link.heard = time.tick;
    },
    drained() {},
    closed: (link) => agentClosed(edge, link),
  };

  const tick = () => {
    time.tick++;
    const is = (ms: number) => time.tick % toTicks(ms) === 0;
    edge.forward.tick();
    edge.admission.device.tick(clock.now());
    edge.admission.agent.tick(clock.now());
    greetingTick(edge);
    seekTick(edge);
    stuckTick(edge);
    pushPingTick(edge, edge.feeds.values());
    roundTick(edge);
    refreshTick(edge);
    linksTick(edge);
    relay.tick();
    if (is(config.confirm_ms)) void writeMarks(edge);
    if (is(config.head_check_ms)) void checkHeads(edge, edge.feeds.values());
    if (is(60_000)) sweep(edge);
  };

  let timer: Timer | undefined;
  let subscriptions: Subscription[] = [];
  /** That devices are taken here. */
  let there: Subscription | undefined;
  let ended: (() => void)[] = [];
  let started = false;

  const stats = (): EdgeStats => {
    let devices = 0;
    let catching_up = 0;
    for (const feed of edge.feeds.values()) {
      devices += feed.live.size + feed.behind.size;
      catching_up += feed.behind.size;
    }
    return {
      devices,
      agents: edge.links.size,
      greeting: edge.greeting.size,
      catching_up,
      feeds: edge.feeds.size,
      in_flight: edge.forward.size,
      known: connections.size,
    };
  };

  const leave = () => {
    there?.end();
    there = undefined;
  };
  const self: Edge = {
    edge_id,
    file: (exchange) => void serveMedia(edge, exchange),
    accept(socket, opening) {
      if (opening.path === '/relay') return relay.accept(socket, opening);
      const connection =
        opening.path === '/agent'
          ? new AgentLink(deps.newConnectionId(), socket, opening.address, opening.token, time.tick, agent)
          : new DeviceConnection(deps.newConnectionId(), socket, opening.address, time.tick, device);
      if (edge.draining) {
        socket.close(closeCodes.restarting, 'this edge goes; connect again');
        return connection;
      }
      if (!edge.addresses.enter(opening.address)) {
        meters.limited.add(1, { what: 'socket' });
        connection.state = { kind: 'closed' };
        socket.close(closeCodes.full, 'too many sockets that have not said hello');
        return connection;
      }
      connections.set(connection.connection_id, connection);
      edge.greeting.add(connection);
      return connection;
    },
    answerPush: (body, address) => answerPush(edge, body, address),
    async start() {
      if (started) return;
      started = true;
      subscriptions = [
        bus.subscribe(subjects.edge(edge_id), (data) => deliver(edge, data)),
        bus.subscribe(subjects.control, (data) => control(edge, data)),
      ];
      ended = [
        outbox.onReconnected(() => {
          // What registered us may be gone, and what was appended meanwhile came to nobody.
          for (const round of edge.rounds) void refresh(edge, round);
          // So may be what devices have confirmed, which is never said twice by itself.
          for (const { live, behind } of edge.feeds.values()) for (const one of [...live, ...behind]) edge.confirmed.add(one);
          void checkHeads(edge, edge.feeds.values());
        }),
        deps.meter.gauge('iris_edge_connections', () => stats().devices),
        deps.meter.gauge('iris_edge_agent_links', () => edge.links.size),
        deps.meter.gauge('iris_edge_greeting', () => edge.greeting.size),
        deps.meter.gauge('iris_edge_catching_up', () => stats().catching_up),
      ];
      timer = clock.every(tick_ms, tick);
      there = takesDevices(bus);
      await bus.flush();
    },
    async drain({ within_ms }) {
      edge.draining = true;
      leave();
      await drain(edge, { within_ms, service: await wasLast(bus) });
      relay.stop();
    },
    async stop() {
      edge.draining = true;
      relay.stop();
      for (const connection of [...connections.values()])
        if (connection.state.kind !== 'closed') connection.socket.close(closeCodes.restarting, 'this edge goes; connect again');
      await Promise.all([writeMarks(edge), ...edge.goodbyes]);
      timer?.cancel();
      leave();
      for (const subscription of subscriptions) subscription.end();
      for (const end of ended) end();
      edge.forward.end();
      // Goodbyes that gathered in this tick are on the bus before it is closed.
      await new Promise<void>((resolve) => clock.soon(resolve));
      started = false;
    },
    ready: () => started && !edge.draining && bus.connected && edge.forward.served,
    stats,
  };
  const relay = relayDoor(edge, (socket, opening) => self.accept(socket, opening));
  return self;
}

function sweep(edge: EdgeContext): void {
  const now = edge.clock.now();
  edge.addresses.sweep(now);
  for (const [key, full_at] of edge.left_buckets) if (full_at <= now) edge.left_buckets.delete(key);
}
