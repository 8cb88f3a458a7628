import { memoryHub } from '@iris/bus';
import { createEdge, defaultEdgeConfig, startUwsServer } from '@iris/edge';
import { memoryJobs } from '@iris/jobs';
import { memoryMedia } from '@iris/media';
import { memoryOutbox } from '@iris/outbox';
import type { ConnectionId, EdgeId, SessionId } from '@iris/protocol';
import { type Log, makeIds, noMeter, systemClock, systemRandom } from '@iris/runtime';
import { createSession, defaultSessionConfig } from '@iris/session';
import { memoryStore } from '@iris/store';
import { type Dial, dialUrl, makeTenant, type Tenancy } from '@iris/testkit';

/** An edge on its real WebSocket server and a session instance, in this process, on memory adapters and real time. */
export interface RealRig {
  readonly port: number;
  readonly device: Dial;
  readonly agent: Dial;
  /** What was logged as an error. */
  readonly errors: string[];
  tenant(): Promise<Tenancy>;
  close(): Promise<void>;
}

export async function realRig(): Promise<RealRig> {
  const errors: string[] = [];
  const log: Log = {
    debug() {},
    info() {},
    warn() {},
    error: (event, fields) => void errors.push(`${event} ${String((fields?.error as Error | undefined)?.stack ?? '')}`),
    child: () => log,
  };
  const shared = { clock: systemClock, log, meter: noMeter, random: systemRandom };
  const hub = memoryHub({ clock: systemClock });
  const outbox = memoryOutbox({ clock: systemClock });
  const store = memoryStore();
  const jobs = memoryJobs({ clock: systemClock });
  const session = createSession(
    {
      ...shared,
      bus: hub.connect('session'),
      outbox,
      store,
      jobs,
      session_id: 'session-1' as SessionId,
    },
    defaultSessionConfig,
  );
  await session.start();
  const ids = makeIds({ clock: systemClock, random: systemRandom });
  const server = await startUwsServer({ host: '127.0.0.1', port: 0 }, (socket, opening) => edge.accept(socket, opening));
  const edge = createEdge(
    {
      ...shared,
      bus: hub.connect('edge'),
      outbox,
      media: memoryMedia(),
      edge_id: 'edge-1' as EdgeId,
      groups: server.groups,
      newConnectionId: () => ids.sortable() as ConnectionId,
    },
    // One address says all that is wrong here.
    { ...defaultEdgeConfig, hello_failures_burst: 1_000_000, hello_failures_per_minute: 1_000_000 },
  );
  await edge.start();
  let tenants = 0;
  return {
    port: server.port,
    device: dialUrl(`ws://127.0.0.1:${server.port}/ws`),
    agent: dialUrl(`ws://127.0.0.1:${server.port}/agent`, { protocols: ['iris-agent.v1'] }),
    errors,
    tenant: () => makeTenant(store, `fuzz${++tenants}`, { at: Date.now() }),
    async close() {
      server.stopListening();
      await edge.drain({ within_ms: 300 });
      await edge.stop();
      await session.stop({ within_ms: 1_000 });
      await jobs.close();
      server.close();
    },
  };
}
