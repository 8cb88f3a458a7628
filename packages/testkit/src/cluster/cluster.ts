import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort } from '@iris/devstack';
import type { Quotas } from '@iris/protocol';
import { migrate, prismaStore, type Store } from '@iris/store';
import type { Evidence } from '../checks/index.js';
import { ownPatience, type Patience, realPatience } from '../record.js';
import { type TestAgent, type TestAgentOptions, testAgent } from '../test-agent.js';
import { type TestDevice, testDevice } from '../test-device.js';
import { type Dial, dialUrl } from '../wire.js';
import { historiesOf, makeTenant, type Tenancy } from '../world/tenant.js';
import { type PartProcess, startPart } from './process.js';
import { freshDatabase, type OwnServer, ownNats, ownRedis, workspace } from './services.js';

export interface ClusterOptions {
  readonly edges?: number;
  readonly sessions?: number;
  readonly workers?: number;
  /** Settings of every part, by their names in the configuration (`ping_ms`). */
  readonly set?: Readonly<Record<string, string | number>>;
  readonly node_args?: readonly string[];
}

/** One process of the product and where it is. */
export interface ClusterPart extends PartProcess {
  readonly metrics_url: string;
}
export interface ClusterEdge extends ClusterPart {
  readonly url: string;
  readonly agent_url: string;
}

/** The real processes on real servers of their own. */
export interface Cluster {
  readonly edges: readonly ClusterEdge[];
  readonly sessions: readonly ClusterPart[];
  readonly workers: readonly ClusterPart[];
  readonly redis: OwnServer;
  readonly nats: OwnServer;
  readonly store: Store;
  readonly patience: Patience;
  startEdge(): Promise<ClusterEdge>;
  startSession(): Promise<ClusterPart>;
  /** @param set settings of this one */
  startWorker(set?: ClusterOptions['set']): Promise<ClusterPart>;
  tenant(quotas?: Partial<Quotas>): Promise<ClusterTenant>;
  close(): Promise<void>;
}

export interface ClusterTenant extends Tenancy {
  device(name: string, options?: { edge?: number; caps?: Record<string, unknown> }): TestDevice;
  join(name: string, options?: { edge?: number; caps?: Record<string, unknown> }): Promise<TestDevice>;
  agent(options?: Partial<TestAgentOptions> & { edge?: number }): TestAgent;
  dial(edge: number, path?: 'ws' | 'agent'): Dial;
  evidence(more?: { lossy?: boolean }): Promise<Evidence>;
}

const root = fileURLToPath(new URL('../../../../', import.meta.url));
let tenants = 0;
/** Milliseconds after which a test has waited in vain. */
const limit_ms = 30_000;

/** Both in one object, getters kept. */
const beside = <A extends object, B extends object>(one: A, other: B): A & B =>
  Object.defineProperties(other, Object.getOwnPropertyDescriptors(one)) as A & B;

const environment = (set: ClusterOptions['set'] = {}): Record<string, string> =>
  Object.fromEntries(Object.entries(set).map(([name, value]) => [`IRIS_${name.toUpperCase()}`, String(value)]));

/** Two edges and two session instances unless told otherwise. Needs a build (`npm run build`). */
export async function cluster(options: ClusterOptions = {}): Promise<Cluster> {
  const space = workspace();
  try {
    return await start(space, options);
  } catch (error) {
    await space.close();
    throw error;
  }
}

async function start(space: ReturnType<typeof workspace>, options: ClusterOptions): Promise<Cluster> {
  const [postgres_url, redis, nats] = await Promise.all([freshDatabase(space), ownRedis(space), ownNats(space)]);
  await migrate(postgres_url);
  const store = prismaStore({ url: postgres_url, poolSize: 4 });
  space.defer(() => store.close());
  const patience = realPatience(limit_ms);
  const env = {
    IRIS_POSTGRES_URL: postgres_url,
    IRIS_REDIS_URL: redis.url,
    IRIS_NATS_URL: nats.url,
    IRIS_MEDIA_DIR: join(space.dir, 'media'),
    IRIS_MEDIA_SECRET: 'signs links to files',
    IRIS_LOG_LEVEL: 'info',
    ...environment(options.set),
  };
  const edges: ClusterEdge[] = [];
  const sessions: ClusterPart[] = [];
  const workers: ClusterPart[] = [];
  const launch = async (app: string, index: number, more: Record<string, string>): Promise<ClusterPart> => {
    const main = join(root, 'apps', app, 'dist', 'main.js');
    if (!existsSync(main)) throw new Error(`${main} is not built: npm run build`);
    const health_port = await freePort();
    const name = `${app}-${index + 1}`;
    const part = await startPart({
      name,
      main,
      env: { ...env, IRIS_HEALTH_PORT: String(health_port), ...more },
      log_file: join(space.dir, 'run', `${name}.log`),
      node_args: options.node_args ?? [],
      ready_url: `http://127.0.0.1:${health_port}/readyz`,
    });
    space.defer(() => part.kill());
    return beside(part, { metrics_url: `http://127.0.0.1:${health_port}/metrics` });
  };

  const self: Cluster = {
    edges,
    sessions,
    workers,
    redis,
    nats,
    store,
    patience,
    async startEdge() {
      const port = await freePort();
      const part = await launch('edge', edges.length, { IRIS_EDGE_PORT: String(port) });
      const edge = beside(part, { url: `ws://127.0.0.1:${port}/ws`, agent_url: `ws://127.0.0.1:${port}/agent` });
      edges.push(edge);
      return edge;
    },
    async startSession() {
      const part = await launch('session', sessions.length, {});
      sessions.push(part);
      return part;
    },
    async startWorker(set) {
      const part = await launch('worker', workers.length, environment(set));
      workers.push(part);
      return part;
    },
    async tenant(quotas) {
      const tenancy = await makeTenant(store, `tenant${process.pid}x${++tenants}`, { at: Date.now(), ...(quotas ? { quotas } : {}) });
      return clusterTenant(self, tenancy);
    },
    close: () => space.close(),
  };
  for (let i = 0; i < (options.sessions ?? 2); i++) await self.startSession();
  await Promise.all(Array.from({ length: options.edges ?? 2 }, () => self.startEdge()));
  for (let i = 0; i < (options.workers ?? 0); i++) await self.startWorker();
  return self;
}

function clusterTenant(self: Cluster, tenancy: Tenancy): ClusterTenant {
  const devices: TestDevice[] = [];
  const agents: TestAgent[] = [];
  const tenant: ClusterTenant = {
    ...tenancy,
    dial: (edge, path = 'ws') => {
      const { url, agent_url } = self.edges[edge]!;
      return path === 'ws'
        ? dialUrl(url)
        : dialUrl(agent_url, { headers: { authorization: `Bearer ${tenancy.agent_token}` }, protocols: ['iris-agent.v1'] });
    },
    device(name, { edge = 0, caps } = {}) {
      const device = testDevice({
        device_id: name,
        token: tenancy.device_token,
        patience: ownPatience(self.patience, limit_ms),
        dial: (events) => tenant.dial(edge)(events),
        ...(caps ? { caps } : {}),
      });
      devices.push(device);
      return device;
    },
    async join(name, how) {
      const device = tenant.device(name, how);
      const answer = await device.join();
      if (answer.type !== 'hello.ack') throw new Error(`${name}: ${JSON.stringify(answer)}`);
      return device;
    },
    agent({ edge = 0, ...more } = {}) {
      const agent = testAgent({ dial: (events) => tenant.dial(edge, 'agent')(events), patience: self.patience, ...more });
      agents.push(agent);
      return agent;
    },
    async evidence({ lossy = false } = {}) {
      const asking = devices.find(({ connected, connections }) => connected && connections.at(-1)?.ack);
      if (asking === undefined) throw new Error('no device is connected');
      return { devices, agents, histories: await historiesOf(asking), lossy };
    },
  };
  return tenant;
}
