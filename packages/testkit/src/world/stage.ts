import type { Quotas } from '@iris/protocol';
import { expectChecks } from '../checks/index.js';
import type { TestAgent } from '../test-agent.js';
import type { TestDevice } from '../test-device.js';
import { makeWorld, type World, type WorldOptions, type WorldTenant } from './world.js';

/** What most tests of one conversation begin with: two edges, two session instances, an agent, and a device on each edge. */
export interface Stage {
  readonly world: World;
  readonly tenant: WorldTenant;
  /** Linked through the first edge; takes turns only when the test takes them. */
  readonly agent: TestAgent;
  /** On the first edge, with cursors. */
  readonly a: TestDevice;
  /** On the second edge, an app of old: no optional abilities. */
  readonly b: TestDevice;
}

export interface StageOptions extends WorldOptions {
  readonly quotas?: Partial<Quotas>;
  /** Without an agent's link. */
  readonly agent?: boolean;
  /** The test leaves the conversation in a state that the checks at the end would not like. */
  readonly unchecked?: boolean;
  /** Warnings and errors that parts may log, by name; any other error fails the test. */
  readonly expected?: readonly string[];
}

export const lane = { chat_id: 'android:default', thread_id: null } as const;

/**
 * Runs `play` on a fresh stage, and afterwards the checks over every device that is still connected: whatever a test is
 * about, nothing of the conversation may have been lost, repeated or reordered.
 */
export async function onStage(play: (stage: Stage) => Promise<void>, options: StageOptions = {}): Promise<void> {
  const world = await makeWorld(options);
  try {
    await perform(world, play, options);
  } finally {
    for (const member of [...world.edges, ...world.sessions, ...world.workers]) member.kill();
    world.time.end();
  }
}

async function perform(world: World, play: (stage: Stage) => Promise<void>, options: StageOptions): Promise<void> {
  const tenant = await world.tenant(options.quotas);
  const agent = tenant.agent();
  if (options.agent !== false) await agent.connect();
  const a = await tenant.join('phone', { edge: 0, caps: { cursors: true } });
  const b = await tenant.join('tablet', { edge: (options.edges ?? 2) > 1 ? 1 : 0 });
  await world.settle();
  for (const device of [a, b]) device.received.skip();
  agent.received.skip();
  await play({ world, tenant, agent, a, b });

  await world.advance(100);
  const faults = [a, b, agent].flatMap((one) => one.faults);
  if (faults.length > 0) throw new Error(`what the gateway sent is not the protocol:\n${faults.join('\n')}`);
  const expected = (event: string) => options.expected?.some((name) => name === '*' || name === event);
  if (world.events.all.some(({ level, event }) => level === 'error' && !expected(event)))
    throw new Error(`errors were logged${world.events.tail()}`);
  if (options.unchecked) return;
  const evidence = await tenant.evidence({ lossy: true });
  expectChecks({ ...evidence, devices: evidence.devices.filter(({ connected }) => connected) });
}

/** As every real agent: whenever its link ends it dials again, through any edge that is alive. */
export function stayAttached({ world, tenant, agent }: Pick<Stage, 'world' | 'tenant' | 'agent'>): void {
  const clock = world.clock('agent');
  const dial = () => {
    const edge = world.chance.pick(world.edges.filter(({ alive }) => alive));
    return edge.links.dial('/agent', { token: tenant.agent_token });
  };
  const again = () =>
    void clock.after(100, () => {
      agent.connect(dial()).then(watch, again);
    });
  const watch = () => void agent.closed({ within_ms: 10 ** 9 }).then(again, () => {});
  watch();
}
