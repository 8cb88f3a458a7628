import { type Bus, type Control, subjects } from '@iris/bus';
import { type AgentId, type ChatId, type Lane, laneKey, type Quotas, type TenantId } from '@iris/protocol';
import type { Clock } from '@iris/runtime';
import type { AgentRow, ChannelRow, Store, TokenRow } from '@iris/store';

/** A tenant's channels and threads, to look things up in. */
export interface ChannelView {
  readonly rows: readonly ChannelRow[];
  readonly byLane: ReadonlyMap<string, ChannelRow>;
  readonly defaultChat: ChatId;
}
export interface TenantView {
  readonly active: boolean;
  readonly quotas: Quotas;
}
type What = Extract<Control, { kind: 'changed' }>['what'];

/**
 * Rows that nearly every request needs, kept in memory: a cache, never the truth. Who changes them says so to every
 * instance; what is not found here is looked up in the store before anyone is told that it does not exist.
 */
export interface Directory {
  tenant(tenant_id: TenantId): Promise<TenantView | undefined>;
  /** Its quota `weight`, as far as it is known here. */
  weightOf(tenant_id: TenantId): number;
  token(tenant_id: TenantId, hash: string): Promise<TokenRow | undefined>;
  channels(tenant_id: TenantId): Promise<ChannelView>;
  lane(tenant_id: TenantId, lane: Lane): Promise<ChannelRow | undefined>;
  agents(tenant_id: TenantId): Promise<readonly AgentRow[]>;
  agent(tenant_id: TenantId, agent_id: AgentId): Promise<AgentRow | undefined>;
  /** The agent that serves a lane. */
  agentOf(tenant_id: TenantId, lane: Lane): Promise<AgentRow | undefined>;
  /** It was changed here: drop it, and tell the others. */
  changed(tenant_id: TenantId, what: What): void;
  /** It was changed elsewhere. */
  drop(tenant_id: TenantId, what: What): void;
  close(): void;
}

interface Kept<T> {
  readonly value: Promise<T>;
  readonly until: number;
}
interface Shelf {
  tenant?: Kept<TenantView | undefined>;
  channels?: Kept<ChannelView>;
  agents?: Kept<readonly AgentRow[]>;
  readonly tokens: Map<string, Kept<TokenRow | undefined>>;
  usedAt: number;
  weight?: number;
}

/** Tokens of one tenant that are kept; what is beyond is looked up each time. */
const tokensMax = 1_000;
const utf8 = new TextEncoder();

export function createDirectory(deps: {
  store: Store;
  bus: Bus;
  clock: Clock;
  quotas: Quotas;
  cache_ms: number;
  idle_ms: number;
}): Directory {
  const { store, bus, clock } = deps;
  const shelves = new Map<TenantId, Shelf>();

  const shelfOf = (tenant_id: TenantId): Shelf => {
    let shelf = shelves.get(tenant_id);
    if (shelf === undefined) {
      shelf = { tokens: new Map(), usedAt: 0 };
      shelves.set(tenant_id, shelf);
    }
    shelf.usedAt = clock.now();
    return shelf;
  };
  /** What is absent or failed is not kept. */
  const keep = <T>(load: Promise<T>, set: (kept: Kept<T> | undefined) => void, isSet: (kept: Kept<T>) => boolean): Promise<T> => {
    const kept: Kept<T> = { value: load, until: clock.now() + deps.cache_ms };
    set(kept);
    const forget = () => {
      if (isSet(kept)) set(undefined);
    };
    load.then((value) => value === undefined && forget(), forget);
    return load;
  };
  const fresh = <T>(kept: Kept<T> | undefined): kept is Kept<T> => kept !== undefined && kept.until > clock.now();
  const one = <K extends 'tenant' | 'channels' | 'agents'>(tenant_id: TenantId, name: K, load: () => NonNullable<Shelf[K]>['value']) => {
    const shelf = shelfOf(tenant_id);
    const kept = shelf[name] as Kept<unknown> | undefined;
    if (fresh(kept)) return kept.value as NonNullable<Shelf[K]>['value'];
    return keep(
      load() as Promise<unknown>,
      (next) => {
        if (next === undefined) delete shelf[name];
        else shelf[name] = next as NonNullable<Shelf[K]>;
      },
      (same) => shelf[name] === same,
    ) as NonNullable<Shelf[K]>['value'];
  };

  const tenant: Directory['tenant'] = (tenant_id) =>
    one(tenant_id, 'tenant', async () => {
      const row = await store.tenants.get(tenant_id);
      const quotas = { ...deps.quotas, ...row?.quotas };
      shelfOf(tenant_id).weight = quotas.weight;
      return row && { active: row.state === 'active', quotas };
    });
  const channels: Directory['channels'] = (tenant_id) =>
    one(tenant_id, 'channels', async () => {
      const rows = await store.channels.list(tenant_id);
      return {
        rows,
        byLane: new Map(rows.map((row) => [laneKey(row), row])),
        defaultChat: rows.find((row) => row.is_default)?.chat_id ?? ('android:default' as ChatId),
      };
    });
  const agents: Directory['agents'] = (tenant_id) => one(tenant_id, 'agents', () => store.agents.list(tenant_id));
  const drop: Directory['drop'] = (tenant_id, what) => {
    const shelf = shelves.get(tenant_id);
    if (shelf === undefined) return;
    if (what === 'tokens') shelf.tokens.clear();
    else delete shelf[what];
  };
  /** What is not in the cache may be newer than it. */
  const sure = async <T>(tenant_id: TenantId, what: 'channels' | 'agents', find: () => Promise<T | undefined>): Promise<T | undefined> => {
    const found = await find();
    if (found !== undefined) return found;
    drop(tenant_id, what);
    return find();
  };
  const lane: Directory['lane'] = (tenant_id, at) =>
    sure(tenant_id, 'channels', async () => (await channels(tenant_id)).byLane.get(laneKey(at)));

  const timer = clock.every(deps.idle_ms, () => {
    for (const [tenant_id, shelf] of shelves) if (shelf.usedAt < clock.now() - deps.idle_ms) shelves.delete(tenant_id);
  });

  return {
    tenant,
    channels,
    lane,
    agents,
    async token(tenant_id, hash) {
      const { tokens } = shelfOf(tenant_id);
      const kept = tokens.get(hash);
      if (fresh(kept)) return kept.value;
      tokens.delete(hash);
      const load = store.tokens.find(tenant_id, hash);
      if (tokens.size >= tokensMax) return load;
      return keep(
        load,
        (next) => void (next === undefined ? tokens.delete(hash) : tokens.set(hash, next)),
        (same) => tokens.get(hash) === same,
      );
    },
    agent: (tenant_id, agent_id) =>
      sure(tenant_id, 'agents', async () => (await agents(tenant_id)).find((row) => row.agent_id === agent_id)),
    async agentOf(tenant_id, at) {
      const channel = await lane(tenant_id, at);
      const all = await agents(tenant_id);
      const bound = channel?.agent_id ?? null;
      return (bound === null ? undefined : all.find((row) => row.agent_id === bound)) ?? all.find((row) => row.is_default) ?? all[0];
    },
    weightOf: (tenant_id) => shelves.get(tenant_id)?.weight ?? deps.quotas.weight,
    drop,
    changed(tenant_id, what) {
      drop(tenant_id, what);
      bus.publish(subjects.control, utf8.encode(JSON.stringify({ kind: 'changed', tenant_id, what } satisfies Control)));
    },
    close: () => timer.cancel(),
  };
}
