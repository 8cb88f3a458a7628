import { expectChecks } from '../checks/index.js';
import type { TestDevice } from '../test-device.js';
import type { Cluster, ClusterTenant } from './cluster.js';
import { keepAgent } from './streaming.js';

export interface RollingOptions {
  /** Spread over the edges that there are. */
  readonly devices: number;
  /** Milliseconds between two sends of the one who talks. */
  readonly every_ms: number;
  /** How many session instances are replaced; absent: all. */
  readonly sessions?: number;
  /** How many of the devices are looked at for what they saw. */
  readonly watched: number;
  readonly say?: (line: string) => void;
}

export interface RollingReport {
  /** Of every process that was asked to stop; 0 is one that ended by itself, in time. */
  readonly exit_codes: readonly (number | null)[];
  readonly closes: Readonly<Record<number, number>>;
  /** The largest share of one edge's sockets that it closed within 100 ms. */
  readonly most_at_once: number;
  readonly hello_p99_ms: number;
  readonly hello_max_ms: number;
  readonly sends: number;
  /** The longest that one send, asked again and again, took. */
  readonly send_max_ms: number;
  readonly took_ms: number;
}

const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms));

/**
 * Every edge and session instance is replaced, one after the other, each with SIGTERM and its successor there before: while devices
 * are connected, one talks and an agent answers. Afterwards everybody is back, and nothing was lost, repeated or put out of order.
 * @throws with what does not hold
 */
export async function rollingRestart(cluster: Cluster, options: RollingOptions): Promise<RollingReport> {
  const { say = () => {} } = options;
  const begun = Date.now();
  const tenant = await cluster.tenant({ devices: 100_000, connections: 100_000 });
  const agent = tenant.agent({
    script(turn) {
      turn.accept();
      turn.message(`answer to ${turn.text}`);
      turn.end();
    },
  });
  await agent.connect();
  const attached = keepAgent(cluster, tenant, agent);
  const crowd = makeCrowd(cluster, tenant);
  let over = false;
  try {
    return await roll();
  } finally {
    over = true;
    attached.end();
    crowd.end();
    agent.close();
  }
  async function roll(): Promise<RollingReport> {
    const [talker] = await crowd.join(options.devices);
    say(`${options.devices} devices are there`);

    const took: number[] = [];
    /** Fails at once while it is between two edges. */
    const ask = async (n: number) => talker!.send(`message ${n}`, { client_ref: `ref ${n}`, within_ms: 12_000 });
    const talking = (async () => {
      for (let n = 0; !over; n++) {
        const since = Date.now();
        for (;;) {
          const answer = await ask(n).catch(() => undefined);
          if (answer?.type === 'message') break;
          if (Date.now() - since > 60_000) throw new Error(`message ${n} is not answered: ${JSON.stringify(answer)}`);
          await pause(50);
        }
        took.push(Date.now() - since);
        await pause(options.every_ms);
      }
    })();
    // Heard when it is waited for.
    talking.catch(() => {});
    const exit_codes: (number | null)[] = [];
    for (const edge of cluster.edges.filter(({ alive }) => alive)) {
      await cluster.startEdge();
      exit_codes.push(await edge.stop());
      say(`${edge.name} ended with ${exit_codes.at(-1)}`);
    }
    for (const session of cluster.sessions.filter(({ alive }) => alive).slice(0, options.sessions)) {
      await cluster.startSession();
      exit_codes.push(await session.stop());
      say(`${session.name} ended with ${exit_codes.at(-1)}`);
    }
    over = true;
    await talking;
    await crowd.settled();
    const idle = () => talker!.frames(['agent.busy', 'agent.idle']).at(-1)?.type === 'agent.idle';
    await cluster.patience.wait(() => (idle() && agent.unacked.length === 0) || undefined, {
      describe: () => 'the agent is still at work',
    });
    const looked = crowd.devices.slice(0, options.watched);
    const last = `answer to message ${took.length - 1}`;
    const whole = (device: TestDevice) =>
      device.connected &&
      device.frames(({ payload }) => payload.text === last).length > 0 &&
      device.frames(['agent.busy', 'agent.idle']).at(-1)?.type === 'agent.idle';
    await cluster.patience.wait(() => looked.every(whole) || undefined, { describe: () => 'somebody does not get the last word' });
    // Behind the last word: what is said after a look at history is not in it.
    const evidence = await tenant.evidence();
    expectChecks({ ...evidence, devices: looked });
    const rows = [...evidence.histories.values()].flat().map(({ text }) => text);
    for (const [n] of took.entries())
      for (const text of [`message ${n}`, `answer to message ${n}`])
        if (rows.filter((row) => row === text).length !== 1)
          throw new Error(`"${text}" is ${rows.filter((row) => row === text).length} times in history`);
    const hellos = crowd.hellos.toSorted((a, b) => a - b);
    return {
      exit_codes,
      closes: crowd.closes(),
      most_at_once: crowd.mostAtOnce(),
      hello_p99_ms: hellos[Math.floor(hellos.length * 0.99)] ?? 0,
      hello_max_ms: hellos.at(-1) ?? 0,
      sends: took.length,
      send_max_ms: Math.max(0, ...took),
      took_ms: Date.now() - begun,
    };
  }
}

/** Devices that come back by themselves, at once, by any edge that takes them. */
function makeCrowd(cluster: Cluster, tenant: ClusterTenant) {
  const devices: TestDevice[] = [];
  const hellos: number[] = [];
  /** When which edge closed one, and with what. */
  const closed: { readonly edge: number; readonly at: number; readonly code: number }[] = [];
  let ended = false;

  const come = async (device: TestDevice, from: number): Promise<number> => {
    for (let edge = from; ; edge = (edge + 1) % cluster.edges.length) {
      if (ended) return edge;
      try {
        if (!cluster.edges[edge]!.alive) throw new Error('it is gone');
        const asked = Date.now();
        await device.connect(tenant.dial(edge));
        const answer = await device.hello({}, { within_ms: 12_000 });
        if (answer.type !== 'hello.ack') throw new Error('refused');
        hellos.push(Date.now() - asked);
        await device.sync(undefined, { within_ms: 12_000 });
        return edge;
      } catch {
        device.cut();
        await pause(20);
      }
    }
  };
  const keep = async (device: TestDevice, first: number): Promise<void> => {
    for (let edge = first; !ended; ) {
      const { code } = await device.closed({ within_ms: 600_000 }).catch(() => ({ code: 0 }));
      if (ended) return;
      closed.push({ edge, at: Date.now(), code });
      edge = await come(device, (edge + 1) % cluster.edges.length);
    }
  };
  return {
    devices,
    hellos,
    async join(count: number): Promise<readonly TestDevice[]> {
      const alive = cluster.edges.flatMap((edge, index) => (edge.alive ? [index] : []));
      for (let n = 0; n < count; n += 50)
        await Promise.all(
          Array.from({ length: Math.min(50, count - n) }, async (_, i) => {
            const device = tenant.device(`device ${n + i}`, { caps: { cursors: (n + i) % 2 === 0 } });
            devices.push(device);
            const edge = await come(device, alive[(n + i) % alive.length]!);
            void keep(device, edge);
          }),
        );
      hellos.length = 0;
      return devices;
    },
    settled: () =>
      cluster.patience.wait(() => devices.every((one) => one.connected && one.connections.at(-1)?.synced !== undefined) || undefined, {
        within_ms: 60_000,
        describe: () => 'not everybody comes back',
      }),
    closes: () =>
      Object.fromEntries(
        [...new Set(closed.map(({ code }) => code))].map((code) => [code, closed.filter((one) => one.code === code).length]),
      ),
    mostAtOnce() {
      const shares = [...new Set(closed.map(({ edge }) => edge))].map((edge) => {
        const times = closed.filter((one) => one.edge === edge).map(({ at }) => at);
        return Math.max(...times.map((from) => times.filter((at) => at >= from && at < from + 100).length)) / times.length;
      });
      return Math.max(0, ...shares);
    },
    end() {
      ended = true;
      for (const device of devices) device.cut();
    },
  };
}
