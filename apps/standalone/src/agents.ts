import { type BackendName, createTenantAgents, ModelSettings, TenantAgent, type TenantAgents } from '@iris/agent';
import { type Bus, type Control, subjects } from '@iris/bus';
import { sealedFor } from '@iris/control';
import type { Clock, Log, Seal } from '@iris/runtime';
import type { AgentBackendRow, Store } from '@iris/store';
import { Compile } from 'typebox/compile';
import type { DevTenant } from './dev-json.js';

/** The agents that the gateway runs itself. */
export interface Agents {
  /** Tenants whose default agents the operator's own backend answers for, unless somebody gave them another. */
  attach(tenants: readonly DevTenant[]): Promise<void>;
  /** Whether all of {@link attach} are linked. */
  readonly attached: boolean;
  stop(): Promise<void>;
}

export interface AgentsOptions {
  readonly gateway: string;
  /** A folder with one of its own for each agent. */
  readonly spool_dir: string;
  readonly store: Store;
  readonly bus: Bus;
  /** Absent: what tenants have configured is not run. */
  readonly seal: Seal | undefined;
  /** The operator's own backend, for {@link Agents.attach}: it may be anywhere. */
  readonly own: { readonly backend: BackendName; readonly url?: string; readonly key?: string };
  readonly model: ModelSettings;
  /** Where backends that tenants name may be. */
  readonly reach: Pick<ModelSettings, 'private_addresses' | 'allow_hosts' | 'allow_addresses'>;
  readonly pace_ms: number;
  readonly clock: Clock;
  readonly log: Log;
  /** For tests. */
  readonly start?: Parameters<typeof createTenantAgents>[0]['start'];
}

/** What was not heard is seen by then. */
const look_ms = 30_000;
/** Changes that come together are one look. */
const gather_ms = 200;
const page = 500;
const text = new TextDecoder();
const settings = Compile(TenantAgent);

/**
 * Runs the backends that stand in the store, and follows what the admin API changes there, without a restart: who is new begins, who is changed
 * begins anew, who is removed, shut out or suspended stops.
 */
export async function startAgents(options: AgentsOptions): Promise<Agents> {
  const { store, bus, seal, clock, log } = options;
  const { gateway, spool_dir, pace_ms } = options;
  const common = { gateway, spool_dir, pace_ms, clock, log, ...(options.start === undefined ? {} : { start: options.start }) };
  const { private_addresses, allow_hosts, allow_addresses } = options.reach;
  // No more than is meant for them: whoever starts this gives it whole configurations, with secrets that are none of an agent's business.
  const model = Object.fromEntries(Object.entries(options.model).filter(([name]) => name in ModelSettings)) as ModelSettings;
  const operators: TenantAgents = createTenantAgents({ ...common, model });
  const tenants: TenantAgents = createTenantAgents({ ...common, model: { ...model, private_addresses, allow_hosts, allow_addresses } });
  let attached: readonly DevTenant[] = [];
  /** Undefined before the first look. */
  let serving: ReadonlySet<DevTenant> | undefined;
  let configured: readonly AgentBackendRow[] = [];
  let looking: Promise<void> | undefined;
  let again = false;

  const read = async (): Promise<AgentBackendRow[]> => {
    const rows: AgentBackendRow[] = [];
    for (;;) {
      const after = rows.at(-1);
      const more = await store.agentBackends.running({ limit: page, now: clock.now(), ...(after === undefined ? {} : { after }) });
      rows.push(...more);
      if (more.length < page) return rows;
    }
  };
  /** What the runner is told of it; undefined, and said in the log, when it cannot be opened or is none. */
  const opened = (row: AgentBackendRow): TenantAgent | undefined => {
    const secrets = seal?.open(row.sealed, sealedFor(row));
    const { token, key } = secrets === undefined ? {} : (JSON.parse(secrets) as { token?: string; key?: string });
    const one = { ...row.settings, backend: row.kind, agent_token: token, ...(key === undefined ? {} : { key }) };
    if (settings.Check(one)) return one;
    log.warn('agent.backend_unusable', { tenant_id: row.tenant_id, agent_id: row.agent_id, sealed: secrets === undefined });
    return undefined;
  };
  const serve = async () => {
    const taken = new Set(configured.map(({ agent_id }) => agent_id as string));
    const left = attached.filter(({ agent_id }) => !taken.has(agent_id));
    const ours = (some: readonly DevTenant[]) => operators.serve(some.map(({ agent_token }) => ({ agent_token, ...options.own })));
    // One of the two at a time: who leaves goes before who comes.
    await ours(left.filter((one) => serving?.has(one)));
    const theirs: TenantAgent[] = [];
    for (const row of configured) {
      const one = opened(row);
      if (one === undefined) continue;
      theirs.push(one);
      // Of two runners the one that attached last has the agent. When its link is gone, the other takes it.
      if (!tenants.replaced(one)) continue;
      const agent = await store.agents.get(row.tenant_id, row.agent_id).catch(() => undefined);
      if (agent !== undefined && agent.link_connection_id === null) tenants.reclaim(one);
    }
    await tenants.serve(theirs);
    await ours(left);
    serving = new Set(left);
  };
  const look = async (): Promise<void> => {
    do {
      again = false;
      try {
        if (seal !== undefined) configured = await read();
      } catch (error) {
        // Who is served is served on.
        log.warn('agent.backends_unread', { error });
        return;
      }
      await serve();
    } while (again);
  };
  const ask = (): Promise<void> => {
    again = true;
    looking ??= look().finally(() => {
      looking = undefined;
    });
    return looking;
  };
  let soon: { cancel(): void } | undefined;
  const heard = bus.subscribe(subjects.control, (data) => {
    const control = JSON.parse(text.decode(data)) as Control;
    const concerns = control.kind === 'rerouted' || control.kind === 'revoked' || (control.kind === 'changed' && control.what === 'tenant');
    if (!concerns || soon !== undefined) return;
    soon = clock.after(gather_ms, () => {
      soon = undefined;
      void ask();
    });
  });
  const stopHearing = bus.onConnected((connected) => connected && void ask());
  const timer = clock.every(look_ms, () => void ask());
  await ask();

  return {
    async attach(wanted) {
      attached = wanted;
      await ask();
    },
    get attached() {
      return operators.online === serving?.size;
    },
    async stop() {
      heard.end();
      stopHearing();
      timer.cancel();
      soon?.cancel();
      await looking;
      await Promise.all([operators.stop(), tenants.stop()]);
    },
  };
}
