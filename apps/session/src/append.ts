import type { Appended, Outbox } from '@iris/outbox';
import type { Cursor, EdgeId, TenantId } from '@iris/protocol';
import type { Clock, Meter } from '@iris/runtime';
import type { Tenants } from '@iris/store';
import type { OutFrame } from './emission.js';
import { gather } from './gather.js';
import type { Patience } from './patience.js';

/** What this instance knows of a tenant's outbox; a cache of what the last answer said. */
export interface Route {
  readonly tenant_id: TenantId;
  head: Cursor;
  edges: ReadonlySet<EdgeId>;
  /** When an answer last said which edges there are; 0: never. */
  at: number;
  /** State of the instances when it last appended here, if nobody else appended since as far as it could see. */
  alone: number | undefined;
}

export interface Appender {
  /** Puts `values` and appends, seeding and extending as the outbox asks. */
  append(route: Route, frames: readonly OutFrame[], values: Readonly<Record<string, string | null>>): Promise<Appended>;
  /** Runs `attempt` until it is not refused. */
  seeded<T extends object>(route: Route, attempt: () => Promise<T | { readonly refused: 'unseeded' | 'exhausted' }>): Promise<T>;
}

/**
 * The outbox's side of `emit`.
 * @param deps.alone a number that changes with every change of instances, while this one serves the tenant; else undefined
 * @param deps.onSeeded the outbox lost its place: its values are gone, and what runs must be told again
 */
export function createAppender(deps: {
  outbox: Outbox;
  tenants: Tenants;
  clock: Clock;
  meter: Meter;
  patience: Patience;
  cursor_block: number;
  maxFrames: (tenant_id: TenantId) => Promise<number>;
  alone: (tenant_id: TenantId) => number | undefined;
  onSeeded: (tenant_id: TenantId) => Readonly<Record<string, string | null>>;
  weightOf: (tenant_id: TenantId) => number;
}): Appender {
  const { outbox, clock, patience } = deps;
  const seeds = deps.meter.counter('iris_session_seeds_total');
  const seconds = deps.meter.histogram('iris_outbox_append_seconds');

  const call: Outbox['append'] = async (batches) => {
    const begun = clock.now();
    const answers = await outbox.append(batches);
    seconds.record((clock.now() - begun) / 1_000);
    return answers;
  };
  const together = gather({
    call,
    soon: (run) => clock.soon(run),
    calls: 4,
    most: 200,
    // Always the batch of one tenant.
    asker(batches) {
      const { tenant_id: key, frames } = batches[0]!;
      return { key, weight: deps.weightOf(key), cost: 1 + frames.length };
    },
  });

  const reserve = async (tenant_id: TenantId) => {
    const block = await deps.tenants.reserveCursors(tenant_id, deps.cursor_block);
    if (block === undefined) throw new Error(`no tenant ${tenant_id}`);
    return block;
  };
  /** A cursor that was given once is in a block that was reserved before, so it is at or below `from`. */
  const seed = async (route: Route) => {
    const { from, to } = await reserve(route.tenant_id);
    const known = from === 0 ? 0 : route.alone !== undefined && route.alone === deps.alone(route.tenant_id) ? route.head : undefined;
    await outbox.seed(route.tenant_id, from, to, known);
    seeds.add(1, { why: from === 0 ? 'new' : 'lost' });
    const values = from === 0 ? {} : deps.onSeeded(route.tenant_id);
    if (Object.keys(values).length > 0) await outbox.put(route.tenant_id, values);
  };

  const seeded: Appender['seeded'] = async (route, attempt) => {
    for (;;) {
      const answer = await attempt();
      if (!('refused' in answer) || answer.refused === undefined) return answer as Exclude<typeof answer, { refused: string }>;
      if (answer.refused === 'unseeded') await seed(route);
      else await outbox.extend(route.tenant_id, (await reserve(route.tenant_id)).to);
    }
  };

  return {
    seeded,
    async append(route, frames, values) {
      const max_frames = await deps.maxFrames(route.tenant_id);
      const batch = { tenant_id: route.tenant_id, frames, max_frames };
      const appended = await patience.persist(
        (tried) =>
          seeded<Appended>(route, async () => {
            const puts = Object.keys(values).length > 0 ? outbox.put(route.tenant_id, values) : undefined;
            // Alone after a failure: what another tenant's frames did to the call must not hold this one up.
            const appending = tried === 0 ? together([batch]).then(([answer]) => answer!) : call([batch]).then(([answer]) => answer!);
            // Both are waited for, whichever fails: an attempt that is still under way would mix with the next.
            const [put, answer] = await Promise.allSettled([puts, appending]);
            if (put.status === 'rejected') throw put.reason;
            if (answer.status === 'rejected') throw answer.reason;
            return answer.value;
          }),
        { what: 'append' },
      );
      if (frames.length > 0 && appended.fresh.includes(true)) {
        route.alone = deps.alone(route.tenant_id);
        route.head = Math.max(route.head, ...appended.cursors);
      } else route.head = Math.max(route.head, appended.previous);
      route.edges = new Set(appended.edges);
      route.at = clock.now();
      return appended;
    },
  };
}
