import type { Lane, TenantId } from '@iris/protocol';
import type { Clock } from '@iris/runtime';
import { arrayOf } from '../search/folded-text.js';
import { gramSeed, gramsOfTerms } from '../search/grams.js';
import { parseQuery, type SearchQuery, type Term } from '../search/query.js';
import { snippetOf } from '../search/snippet.js';
import type { Messages, SearchHit } from '../store.js';
import { type Sql, sqlState } from './connections.js';
import { rowOf, threadKey } from './mapping.js';

/**
 * How many of the newest messages are looked at one by one before the index is asked. A word that fifty of them have is answered by them,
 * and so is everything in a tenant that has no more; in the index such words would be the dearest.
 */
export const newestLooked = 1_000;

/** A statement and its values, as it goes to Postgres. */
export interface Statement {
  readonly text: string;
  readonly values: readonly unknown[];
}

interface Asked {
  readonly tenant_id: TenantId;
  readonly query: SearchQuery;
  readonly lane: Lane | undefined;
  /** Hits wanted, and one more that says whether there are more. */
  readonly wanted: number;
}

const shown = 'message_id, chat_id, thread_id, role, ts, cursor, seq';
const newestFirst = 'cursor DESC NULLS FIRST, seq DESC';

/** Conditions and rank of a query over `search_text`; `next` takes a value and gives its name in the statement. */
function wording({ query, lane }: Asked, form: keyof Term, next: (value: unknown) => string) {
  const has = (text: string): string => `position(${next(text)} IN search_text) > 0`;
  const inLane = lane ? [`chat_id = ${next(lane.chat_id)} AND thread_id = ${next(threadKey(lane))}`] : [];
  const matching = [...query.all.map((term) => has(term[form])), ...query.none.map(({ part }) => `NOT ${has(part)}`)].join(' AND ');
  const every = (wanted: keyof Term): string =>
    query.all.every((term) => term[wanted] === term[form]) ? 'true' : query.all.map((term) => has(term[wanted])).join(' AND ');
  const joined = query.joined ? `WHEN ${has(query.joined.whole)} THEN 0 WHEN ${every('whole')} THEN 1` : `WHEN ${every('whole')} THEN 0`;
  return { inLane, matching, rank: `CASE ${joined} WHEN ${every('start')} THEN 2 ELSE 3 END` };
}

const valuesOf = (first: readonly unknown[]) => {
  const values = [...first];
  return { values, next: (value: unknown): string => `$${values.push(value)}` };
};

/** The best among the newest, and how many those were: fewer than asked for means that there are no others. */
export function newestStatement(asked: Asked): Statement {
  const { values, next } = valuesOf([asked.tenant_id, newestLooked, asked.wanted]);
  const { inLane, matching, rank } = wording(asked, 'part', next);
  const text = `
WITH newest AS (
  SELECT message_id, cursor, seq, CASE WHEN ${matching} THEN ${rank} END AS rank FROM message
  WHERE ${['tenant_id = $1 AND deleted_at IS NULL', ...inLane].join(' AND ')} ORDER BY ${newestFirst} LIMIT $2
), best AS (
  SELECT message_id AS id, rank FROM newest WHERE rank IS NOT NULL ORDER BY rank, ${newestFirst} LIMIT $3
)
SELECT n.looked, b.rank, m.text, ${shown.replaceAll(/\w+/g, 'm.$&')} FROM (SELECT count(*)::int AS looked FROM newest) n
LEFT JOIN best b ON true LEFT JOIN message m ON m.tenant_id = $1 AND m.message_id = b.id ORDER BY b.rank, m.cursor DESC NULLS FIRST, m.seq DESC`;
  return { text, values };
}

/** The best of all that have every term in this form, by the index. */
export function indexStatement(asked: Asked, form: 'part' | 'whole'): Statement {
  const { all, any } = gramsOfTerms(gramSeed(asked.tenant_id), asked.query.all, form === 'whole');
  const { values, next } = valuesOf([asked.tenant_id, asked.wanted, arrayOf(all)]);
  const { inLane, matching, rank } = wording(asked, form, next);
  const grams = [
    ...(all.length > 0 ? ['search_grams @> $3::int[]'] : ['$3::int[] IS NOT NULL']),
    ...any.map((some) => `search_grams && ${next(arrayOf(some))}::int[]`),
  ];
  const text = `
SELECT * FROM (
  SELECT ${shown}, text, ${rank} AS rank FROM message
  WHERE ${['tenant_id = $1 AND deleted_at IS NULL', ...grams, ...inLane, matching].join(' AND ')}
) found ORDER BY rank, ${newestFirst} LIMIT $2`;
  return { text, values };
}

interface Found extends Omit<SearchHit, 'snippet'> {
  readonly text: string;
  readonly rank: number;
  readonly looked?: number;
}

/** As long as a request is waited for. */
const waited_ms = 10_000;
const queryCanceled = '57014';

/** Units of text looked through for snippets before others get a turn of the loop. */
const snippetUnits = 128 * 1024;

/** @param sql that is held to no tenant: behind a policy Postgres would not use the index of the grams. Each statement names its tenant. */
export function messageSearch(sql: Sql, clock: Clock): Messages['search'] {
  const run = ({ text, values }: Statement): Promise<Found[]> => sql.rows<Found>(text, values);

  /** Undefined when Postgres gave up: one letter of an alphabet, in a tenant with very many messages, on a busy server. */
  const byIndex = (asked: Asked, form: 'part' | 'whole'): Promise<Found[] | undefined> =>
    run(indexStatement(asked, form)).catch((error: unknown) => {
      if (sqlState(error) !== queryCanceled) throw error;
      return undefined;
    });

  /** Best first, at most `wanted`; `all` unless there was no time for those further back. */
  async function best(asked: Asked): Promise<{ found: readonly Found[]; all: boolean }> {
    const rows = await run(newestStatement(asked));
    const looked = rows[0]?.looked ?? 0;
    const newest = rows.filter(({ rank }) => rank !== null);
    const wholes = newest.filter(({ rank }) => rank <= 1).length;
    if (looked < newestLooked || wholes >= asked.wanted) return { found: newest, all: true };
    if (newest.length < asked.wanted) {
      const found = await byIndex(asked, 'part');
      return { found: found ?? newest, all: found !== undefined };
    }
    // Parts of words are plenty, the words themselves are not: those are worth being looked for further back.
    const further = await byIndex(asked, 'whole');
    if (further === undefined) return { found: newest, all: false };
    // A message may have been given another text in between.
    const ids = new Set(further.map(({ message_id }) => message_id));
    const parts = newest.filter(({ rank, message_id }) => rank > 1 && !ids.has(message_id));
    return { found: [...further, ...parts].slice(0, asked.wanted), all: true };
  }

  /** The last of each tenant's searches that are under way or wait: many at once of one tenant keep no other's waiting. */
  const lasts = new Map<TenantId, Promise<unknown>>();
  function inTurn<T>(tenant_id: TenantId, search: () => Promise<T>): Promise<T> {
    const asked_at = clock.now();
    const mine = (lasts.get(tenant_id) ?? Promise.resolve()).then(() => {
      if (clock.now() - asked_at > waited_ms) throw new Error('nobody waits for this search any more');
      return search();
    });
    const last = mine
      .catch(() => {})
      .then(() => {
        if (lasts.get(tenant_id) === last) lasts.delete(tenant_id);
      });
    lasts.set(tenant_id, last);
    return mine;
  }

  return async (tenant_id, { text, lane, limit }) => {
    const query = parseQuery(text);
    if (query.all.length === 0) return { rows: [], has_more: false };
    const { found, all } = await inTurn(tenant_id, () => best({ tenant_id, query, lane, wanted: limit + 1 }));
    const rows: SearchHit[] = [];
    let units = 0;
    for (const row of found.slice(0, limit)) {
      const { message_id, chat_id, thread_id, role, ts } = rowOf<Found>(row);
      rows.push({ message_id, chat_id, thread_id, role, ts, snippet: snippetOf(row.text, query, row.rank) });
      units += row.text.length;
      if (units < snippetUnits) continue;
      units = 0;
      await new Promise<void>((resolve) => clock.soon(resolve));
    }
    return { rows, has_more: found.length > limit || !all };
  };
}
