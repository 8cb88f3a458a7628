import type { TestAgent } from '../test-agent.js';
import type { TestDevice } from '../test-device.js';
import type { TestTurn } from '../test-turn.js';
import type { Cluster, ClusterTenant } from './cluster.js';

/** Keeps an agent or a device attached through whatever happens, as real ones do; ends with the test. */
export interface Attached {
  end(): void;
}

/** Comes back through any edge that answers, and catches up. */
export function keepDevice(cluster: Cluster, tenant: ClusterTenant, device: TestDevice): Attached {
  let ended = false;
  const run = async () => {
    for (let edge = 0; !ended; edge = (edge + 1) % cluster.edges.length) {
      if (device.connected) {
        await device.closed({ within_ms: 600_000 }).catch(() => {});
        continue;
      }
      try {
        if (!cluster.edges[edge]!.alive) throw new Error('dead');
        await device.connect(tenant.dial(edge));
        const answer = await device.hello({}, { within_ms: 12_000 });
        if (answer.type !== 'hello.ack') throw new Error('refused');
        await device.sync(undefined, { within_ms: 12_000 });
      } catch {
        device.cut();
        await moment();
      }
    }
  };
  void run();
  return {
    end: () => {
      ended = true;
    },
  };
}

export function keepAgent(cluster: Cluster, tenant: ClusterTenant, agent: TestAgent): Attached {
  let ended = false;
  const run = async () => {
    for (let edge = 0; !ended; edge = (edge + 1) % cluster.edges.length) {
      if (agent.connected) {
        await agent.closed({ within_ms: 600_000 }).catch(() => {});
        continue;
      }
      try {
        if (!cluster.edges[edge]!.alive) throw new Error('dead');
        await agent.connect(tenant.dial(edge, 'agent'));
      } catch {
        await moment();
      }
    }
  };
  void run();
  return {
    end: () => {
      ended = true;
    },
  };
}

/** Between two attempts to connect; nothing is waited for with it. */
const moment = () => new Promise<void>((resolve) => void setTimeout(resolve, 100));

/** Streams words into the turn until told to finish. */
export function stream(turn: TestTurn, every_ms = 20): { readonly words: number; finish(): string } {
  turn.start();
  let words = 0;
  const timer = setInterval(() => turn.delta(`word${words++} `), every_ms);
  return {
    get words() {
      return words;
    },
    finish() {
      clearInterval(timer);
      const text = [...turn.running.values()].at(-1)!.text;
      turn.stop();
      turn.end();
      return text;
    },
  };
}
