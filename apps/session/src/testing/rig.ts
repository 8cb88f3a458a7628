import { type MemoryBus, memoryHub } from '@iris/bus';
import { memoryJobs } from '@iris/jobs';
import { memoryOutbox } from '@iris/outbox';
import { type AgentId, makeToken, type SessionId, type TenantId, type TokenId } from '@iris/protocol';
import type { Log } from '@iris/runtime';
import { silentLog } from '@iris/runtime';
import { manualClock, recordingMeter, seededRandom } from '@iris/runtime/testing';
import { memoryStore, type Store, tokenHash } from '@iris/store';
import { defaultSessionConfig, type SessionConfig } from '../config.js';
import { createSession, type Session } from '../session.js';
import { scriptedEdge } from './scripted-edge.js';

export const tenant = 'tn1' as TenantId;
export const agent_id = 'ag1' as AgentId;
export const deviceToken = makeToken('device', tenant, '0123456789abcdef');
export const agentToken = makeToken('agent', tenant, '0123456789abcdef');
export const lane = { chat_id: 'android:default', thread_id: null };

export interface RigOptions {
  readonly config?: Partial<SessionConfig>;
  readonly log?: Log;
  /** What the instances see of the store. */
  readonly store?: (store: Store) => Store;
}

/** Session instances on memory adapters and a clock that stands still, with an edge that a test writes the lines of. */
export async function rig({ config = {}, log = silentLog, store: through = (store) => store }: RigOptions = {}) {
  const clock = manualClock();
  const hub = memoryHub({ clock, poison: true });
  const outbox = memoryOutbox({ clock });
  const store = memoryStore(clock);
  const jobs = memoryJobs({ clock });
  const meter = recordingMeter();
  const at = clock.now();
  await store.tenants.create({ tenant_id: tenant, name: 'Test', agent_id, at });
  const token = (kind: 'device' | 'agent', text: string, more: { device_id?: never } = {}) =>
    store.tokens.create({
      tenant_id: tenant,
      token_id: `tk_${kind}_${text.length}` as TokenId,
      kind,
      hash: tokenHash(text),
      device_id: more.device_id ?? null,
      agent_id: kind === 'agent' ? agent_id : null,
      created_at: at,
    });
  await token('device', deviceToken);
  await token('agent', agentToken);

  const sessions: { session: Session; bus: MemoryBus; die(): void }[] = [];
  const start = async (name: string) => {
    const session_id = name as SessionId;
    const bus = hub.connect(name);
    const own = outbox.connect();
    const session = createSession(
      {
        bus,
        outbox: own,
        store: through(store),
        jobs: jobs.connect(),
        clock,
        log,
        meter,
        random: seededRandom(sessions.length + 1),
        session_id,
      },
      // Notices come when a test asks for them.
      { ...defaultSessionConfig, notice_ms: 24 * 3600 * 1000, ...config },
    );
    await session.start();
    // Dead: nothing that it says or asks arrives any more.
    const die = () => {
      bus.setConnected(false);
      void own.close();
    };
    sessions.push({ session, bus, die });
    return session;
  };
  await start('s1');
  await clock.settle();
  const edge = scriptedEdge({ bus: hub.connect('edge'), clock });
  return {
    clock,
    hub,
    outbox,
    store,
    meter,
    edge,
    start,
    session: sessions[0]!.session,
    sessionBus: (index: number) => sessions[index]!.bus,
    kill: (index: number) => sessions[index]?.die(),
    /** Every durable frame that can be read, by cursor. */
    async log() {
      const { entries } = await outbox.read(tenant, 0, { limit: 10_000 });
      return entries.map(({ cursor, body }) => ({ cursor, ...(JSON.parse(Buffer.from(body).toString()) as Frame) }));
    },
    device: (device_id = 'd1', connection_id?: string) => edge.device(device_id, deviceToken, connection_id),
    agent: (options?: Parameters<typeof edge.agent>[1]) => edge.agent(agentToken, options),
  };
}
export type Rig = Awaited<ReturnType<typeof rig>>;

export interface Frame {
  readonly type: string;
  readonly id?: string | number;
  readonly seq?: number;
  readonly ack?: number;
  readonly turn_id?: string;
  readonly chat_id?: string;
  readonly thread_id?: string | null;
  // Tests look at any field.
  readonly payload: Record<string, never>;
}
