import type { Outbox } from '@iris/outbox';
import type { MessageId, TenantId } from '@iris/protocol';
import type { Clock } from '@iris/runtime';
import type { Store } from '@iris/store';
import type { Appender, Route } from './append.js';
import type { Done, Waiting } from './batch.js';
import type { Effects, Emission, StoredMessage } from './emission.js';
import { gather } from './gather.js';
import { type Patience, Unavailable } from './patience.js';

/** Step one of a batch: each emission in the store, in order, and those rejected that are not to be. Resolves with the rest. */
export type Persist = (batch: readonly Waiting[]) => Promise<Done[]>;

export function createPersist(deps: {
  store: Store;
  outbox: Outbox;
  appender: Appender;
  patience: Patience;
  clock: Clock;
  routeOf: (tenant_id: TenantId) => Route;
  weightOf: (tenant_id: TenantId) => number;
}): Persist {
  const { store, outbox, patience, clock } = deps;
  const insert = gather({
    call: (rows: Parameters<Store['messages']['insert']>[0]) => store.messages.insert(rows),
    soon: (run) => queueMicrotask(run),
    calls: 4,
    most: 500,
    asker(rows) {
      const key = rows[0]!.message.tenant_id;
      return { key, weight: deps.weightOf(key), cost: rows.length };
    },
  });

  /** Step one of one emission: what it does to the store, and what that makes of it. */
  const persist = (
    emission: Emission,
    more: { first?: () => Promise<StoredMessage>; deleted?: () => Promise<ReadonlySet<MessageId>> } = {},
  ): Promise<Effects> => {
    const { tenant_id, deadline } = emission;
    const options = { deadline, what: `store ${emission.kind}` };
    switch (emission.kind) {
      case 'message':
        return patience
          .persist(async (tried) => (tried === 0 && more.first ? more.first() : (await store.messages.insert([emission.row]))[0]!), options)
          .then((stored) => emission.effects(stored));
      case 'change':
        return patience.persist(async (tried) => {
          const { about = [] } = emission;
          if (about.length === 0) return emission.run(none);
          const asked = tried === 0 ? more.deleted : undefined;
          return emission.run(await (asked?.() ?? store.messages.deleted(tenant_id, about)));
        }, options);
      case 'greeting':
        return patience.persist(async () => {
          const route = deps.routeOf(tenant_id);
          const registered = await deps.appender.seeded(route, () => outbox.register(tenant_id, emission.device));
          route.head = Math.max(route.head, registered.head);
          route.edges = new Set([...route.edges, emission.device.edge_id]);
          return emission.effects(registered, await outbox.values(tenant_id));
        }, options);
    }
  };

  return async (all) => {
    const done: Done[] = [];
    let looked: { readonly upTo: number; readonly deleted: Promise<ReadonlySet<MessageId>> } | undefined;
    /** One question for everything of the batch up to the next that may delete; which only ever stands in front. */
    const deletedFrom = (waiting: Waiting, batch: readonly Waiting[], i: number): Promise<ReadonlySet<MessageId>> => {
      if (looked !== undefined && i <= looked.upTo) return looked.deleted;
      let upTo = i;
      const ids = new Set(aboutOf(waiting));
      while (upTo < batch.length && placeOf(batch[upTo]!) === undefined) for (const id of aboutOf(batch[upTo++]!)) ids.add(id);
      const deleted = store.messages.deleted(waiting.emission.tenant_id, [...ids]);
      deleted.catch(() => {});
      looked = { upTo, deleted };
      return deleted;
    };
    const late = ({ emission: { deadline } }: Waiting) => deadline !== undefined && deadline <= clock.now();
    const take = async (waiting: Waiting, effects: Promise<Effects>) => {
      try {
        const one = { waiting, effects: await effects };
        one.effects.know?.();
        done.push(one);
      } catch (error) {
        waiting.reject(error);
      }
    };
    for (const waiting of all.filter(late)) waiting.reject(new Unavailable('past its deadline'));
    const batch = all.filter((waiting) => !late(waiting));
    if (batch[0]?.emission.kind === 'greeting') {
      await Promise.all(batch.map((waiting) => take(waiting, persist(waiting.emission))));
      return done;
    }
    for (let i = 0; i < batch.length; ) {
      const run: Waiting[] = [];
      while (i < batch.length && batch[i]!.emission.kind === 'message') run.push(batch[i++]!);
      if (run.length > 0) {
        // One question for all of them; if it fails, each is asked alone, so that one bad row takes no other along.
        const rows = run.map(({ emission }) => (emission as Extract<Emission, { kind: 'message' }>).row);
        const answers = insert(rows);
        answers.catch(() => {});
        for (const [at, waiting] of run.entries())
          await take(waiting, persist(waiting.emission, { first: async () => (await answers)[at]! }));
      }
      const next = batch[i];
      if (next !== undefined && next.emission.kind !== 'message') {
        i++;
        await take(next, persist(next.emission, { deleted: () => deletedFrom(next, batch, i) }));
      }
    }
    return done;
  };
}

const none: ReadonlySet<MessageId> = new Set();
const aboutOf = ({ emission }: Waiting): readonly MessageId[] => (emission.kind === 'change' ? (emission.about ?? []) : []);
const placeOf = ({ emission }: Waiting) => (emission.kind === 'change' ? emission.place : undefined);
