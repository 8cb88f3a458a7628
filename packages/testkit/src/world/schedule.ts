import { type Chance, chance } from '../chance.js';
import { expectChecks } from '../checks/index.js';
import { showFrame } from '../frames.js';
import type { TestAgent } from '../test-agent.js';
import { agentScript } from './agent-script.js';
import { type App, app } from './app.js';
import { type Break, type Faults, noFaults } from './faults.js';
import { driven, makeWorld, type World, type WorldTenant } from './world.js';

/** What a schedule did, for those who read about a failure. */
export interface Played {
  readonly seed: number;
  readonly actions: readonly string[];
  /** Of the timeline: alike for the same seed. */
  readonly steps: number;
  readonly frames: number;
  readonly violations: string | undefined;
}

export interface ScheduleOptions {
  readonly breaks?: readonly Break[];
  /** Leave out what kills and loses: only the bus misbehaves. */
  readonly gentle?: boolean;
  /** Called before anything happens: a place to look closer. */
  readonly prepare?: (world: World) => void;
  /** Called at the end with everything that happened, line by line. */
  readonly tell?: (lines: readonly string[]) => void;
}

/** Milliseconds of virtual time in which things go wrong. */
const busy_ms = 4_000;
/** …and after which everything must have come right: the grace of a lost agent is the longest. */
const heal_ms = 45_000;

/**
 * One run: devices talk, an agent answers, and what the seed chose goes wrong. Then all is mended, every device comes back and
 * syncs, and the checks must hold.
 */
export async function playSchedule(seed: number, options: ScheduleOptions = {}): Promise<Played> {
  const dice = chance(seed);
  const actions: string[] = [];
  const faults = chooseFaults(dice);
  const world = await makeWorld({ seed, shuffle: true, held: true, faults, breaks: options.breaks ?? [] });
  const note = (text: string) => actions.push(`${String(world.time.now() - start).padStart(6)} ${text}`);
  const start = world.time.now();
  note(`faults ${JSON.stringify(faults)}`);
  options.prepare?.(world);
  const tenant = await world.tenant();
  const cast = castOf(world, tenant, dice);
  for (const one of cast.apps) one.come();
  cast.agentComes();
  await world.advance(200);

  let lossy = false;
  for (let n = dice.between(6, 14); n > 0; n--) {
    await world.advance(dice.between(0, (2 * busy_ms) / 14));
    const [what, run] = chooseAction(world, cast, dice, options.gentle === true);
    note(what);
    if (what === 'lose outbox') lossy = true;
    run();
  }
  await world.advance(dice.between(0, 1_000));

  note('mend');
  world.backbone.faults = { ...noFaults, bus_ms: [0, 2], store_ms: [0, 2], outbox_ms: [0, 1], socket_ms: [0, 2] };
  await mend(world, cast);
  await world.advance(heal_ms);
  // Everyone comes back once more, so that what is only in the outbox has its chance.
  for (const one of cast.apps) one.leave();
  await world.advance(100);
  for (const one of cast.apps) one.come();
  await world.advance(3_000);

  const violations = await judge(world, tenant, cast, lossy);
  options.tell?.(storyOf(start, actions, tenant, cast, world));
  if (violations) actions.push(...world.events.tail().split('\n'));
  const frames = tenant.log.length;
  for (const member of [...world.edges, ...world.sessions, ...world.workers]) member.kill();
  world.time.end();
  return { seed, actions, steps: world.time.steps, frames, violations };
}

async function judge(world: World, tenant: WorldTenant, cast: Cast, lossy: boolean): Promise<string | undefined> {
  try {
    const evidence = await driven(world.time, tenant.evidence({ lossy }), 20_000);
    for (const { device, owed, online } of cast.apps) {
      if (!online) throw new Error(`${device.device_id} cannot come back`);
      if (owed > 0) throw new Error(`${device.device_id}: ${owed} sends are still not answered`);
    }
    const waitingTurns = [...cast.agent.turns.values()].filter(({ state }) => state === 'offered' || state === 'accepted');
    if (waitingTurns.length > 0) throw new Error(`${waitingTurns.length} turns have not ended`);
    expectChecks(evidence);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

interface Cast {
  readonly apps: readonly App[];
  readonly agent: TestAgent;
  agentComes(): void;
  agentLeaves(): void;
  text(): string;
}

function castOf(world: World, tenant: WorldTenant, dice: Chance): Cast {
  const clock = world.clock('apps');
  const agentClock = world.clock('agent');
  const open = () => dice.pick(world.edges.filter(({ alive }) => alive));
  const retry_ms = [50, 400] as const;
  const names = ['phone', 'tablet', 'desk'].slice(0, dice.between(2, 3));
  const apps = names.map((name, i) =>
    app({
      // The last is an app of old: no cursors on live frames.
      device: tenant.device(name, { caps: { cursors: i < names.length - 1 } }),
      clock,
      chance: dice.fork(name),
      dial: () => open().links.dial('/ws'),
      retry_ms,
      own_cursor: dice.happens(0.5),
    }),
  );
  const agent = tenant.agent({ script: agentScript(agentClock, dice.fork('agent')) });
  let wanted = false;
  let connecting = false;
  const connect = async () => {
    if (!wanted || connecting || agent.connected) return;
    connecting = true;
    try {
      await agent.connect(open().links.dial('/agent', { token: tenant.agent_token }));
      void agent.closed({ within_ms: 10 ** 9 }).then(again, () => {});
    } catch {
      again();
    } finally {
      connecting = false;
    }
  };
  const again = () => void agentClock.after(dice.between(...retry_ms), () => void connect());
  let texts = 0;
  return {
    apps,
    agent,
    agentComes() {
      wanted = true;
      void connect();
    },
    agentLeaves() {
      wanted = false;
      agent.cut();
    },
    text: () => `text ${++texts}`,
  };
}

/** Every seed has some of the faults, few have all: that finds more than all of them together. */
function chooseFaults(dice: Chance): Faults {
  const rate = () => (dice.happens(0.5) ? 0 : dice.pick([0.02, 0.1, 0.3]));
  const slow = (...most: number[]) => [0, dice.pick(most)] as const;
  return {
    ...noFaults,
    bus_drop: rate(),
    bus_repeat: rate(),
    bus_reorder: rate(),
    bus_ms: slow(0, 3, 30),
    store_ms: slow(0, 3, 30),
    outbox_ms: slow(0, 2, 20),
    socket_ms: slow(0, 5, 80),
  };
}

const lane = { chat_id: 'android:default', thread_id: null };

function chooseAction(world: World, cast: Cast, dice: Chance, gentle: boolean): [string, () => void] {
  const one = dice.pick(cast.apps);
  const name = one.device.device_id;
  const alive = <M extends { alive: boolean }>(members: readonly M[]) => members.filter((member) => member.alive);
  const later = (ms: number, run: () => void) => void world.clock('later').after(ms, run);
  const calm: [number, string, () => void][] = [
    [8, `${name} sends`, () => one.send(cast.text())],
    [2, `${name} sends three`, () => void [1, 2, 3].map(() => one.send(cast.text()))],
    [2, `${name} stops the agent`, () => one.ask('agent.stop', {}, lane)],
    [1, `${name} has read`, () => one.ask('read.receipt', { message_id: newest(one) }, lane)],
    [1, `${name} asks history`, () => one.ask('history', { limit: 5 }, lane)],
    [1, `${name} deletes`, () => one.ask('message.delete', { message_ids: [newest(one)] }, lane)],
  ];
  const rough: [number, string, () => void][] = [
    [
      3,
      `${name} is cut`,
      () => {
        one.leave({ silent: dice.happens(0.3) });
        later(dice.between(10, 2_000), () => one.come());
      },
    ],
    [
      1,
      `${name} stops reading`,
      () => {
        one.device.pause();
        later(dice.between(10, 2_000), () => one.device.resume());
      },
    ],
    [
      2,
      'kill session',
      () => {
        dice.pick(alive(world.sessions)).kill();
        void world.startSession();
      },
    ],
    [
      2,
      'kill edge',
      () => {
        dice.pick(alive(world.edges)).kill();
        void world.startEdge();
      },
    ],
    [
      1,
      'freeze session',
      () => {
        const { node } = dice.pick(alive(world.sessions));
        node.clock.freeze();
        later(dice.between(500, 6_000), () => node.clock.thaw());
      },
    ],
    [
      1,
      'freeze edge',
      () => {
        const { node } = dice.pick(alive(world.edges));
        node.clock.freeze();
        later(dice.between(500, 4_000), () => node.clock.thaw());
      },
    ],
    [1, 'lose outbox', () => world.loseOutbox(dice.between(1, 1_500))],
    [1, 'lose bus', () => world.loseBus(dice.between(1, 1_500))],
    [
      2,
      'agent is cut',
      () => {
        cast.agentLeaves();
        later(dice.between(10, 3_000), () => cast.agentComes());
      },
    ],
    [
      1,
      'agent restarts',
      () => {
        cast.agentLeaves();
        cast.agent.restart();
        later(dice.between(10, 1_000), () => cast.agentComes());
      },
    ],
  ];
  const all = gentle ? calm : [...calm, ...rough];
  let at = dice.between(
    1,
    all.reduce((sum, [weight]) => sum + weight, 0),
  );
  for (const [weight, what, run] of all) {
    at -= weight;
    if (at <= 0) return [what, run];
  }
  throw new Error('weights do not add up');
}

const newest = ({ device }: App): string => device.frames('message').at(-1)?.payload.message_id ?? 'm_none';

async function mend(world: World, cast: Cast): Promise<void> {
  for (const { alive, node } of [...world.edges, ...world.sessions]) if (alive) node.clock.thaw();
  for (const one of cast.apps) {
    one.device.resume();
    one.come();
  }
  cast.agentComes();
}

/** Everything, in order of time. */
function storyOf(start: number, actions: readonly string[], tenant: WorldTenant, cast: Cast, world: World): string[] {
  const lines: [number, string][] = actions.map((line) => [Number.parseInt(line, 10), `*** ${line.trim()}`]);
  for (const { at, cursor, frame } of tenant.log) lines.push([(at ?? 0) - start, `append ${cursor} ${showFrame(frame)}`]);
  for (const { device } of cast.apps) {
    for (const { at, connection, source, frame } of device.received.all)
      lines.push([at - start, `${device.device_id}#${connection} ${source} ${showFrame(frame)}`]);
    for (const { at, connection, id, type, payload } of device.asked)
      lines.push([at - start, `${device.device_id}#${connection} asks ${id} ${type} ${JSON.stringify(payload)}`]);
  }
  for (const { at, way, frame } of cast.agent.story) lines.push([at - start, `agent ${way === 'in' ? '<-' : '->'} ${showFrame(frame)}`]);
  for (const { at, level, from, event, fields } of world.events.all)
    lines.push([
      at - start,
      `${level} ${from} ${event} ${JSON.stringify(fields, (_, value: unknown) => (value instanceof Error ? (value.stack ?? value.message) : value))}`,
    ]);
  return lines.sort(([a], [b]) => a - b).map(([at, text]) => `${String(at).padStart(6)} ${text}`);
}
