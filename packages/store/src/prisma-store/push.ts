import type {
  PushActions,
  PushContent,
  PushFrameRow,
  PushFrames,
  PushKind,
  PushOwed,
  PushRuleRow,
  PushRules,
  PushStale,
  PushTargetRow,
  PushTargets,
} from '../push.js';
import { columns } from './columns.js';
import { foreignKeyViolation, type ScopedSql, sqlState, tenantsOf } from './connections.js';
import type { Database } from './database.js';
import { json, rowOf, threadKey } from './mapping.js';

const column = <T extends object, K extends keyof T>(rows: readonly T[], name: K): T[K][] => rows.map((row) => row[name]);

/** The lock is the address's, so that of two devices that name it at once only one has it. */
async function takeAddress({ everywhere }: ScopedSql, kind: PushKind, address: string): Promise<void> {
  await everywhere.rows('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [`${kind} ${address}`]);
  await everywhere.rows('DELETE FROM push_target WHERE kind = $1 AND address = $2', [kind, address]);
}

const upsertTarget = `
INSERT INTO push_target (tenant_id, device_id, kind, address, keys, registered_at) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (tenant_id, device_id, kind) DO UPDATE
SET address = excluded.address, keys = excluded.keys, registered_at = excluded.registered_at, registration = excluded.registration`;

export function prismaPushTargets({ sql }: Database): PushTargets {
  return {
    register: (tenant_id, device_id, targets, at) =>
      sql.transaction(async (tx) => {
        const device = 'SELECT 1 FROM device WHERE tenant_id = $1 AND device_id = $2 AND revoked_at IS NULL';
        if ((await tx.rows(device, [tenant_id, device_id])).length === 0) return false;
        // In one order everywhere, so that two who exchange addresses do not wait for each other.
        for (const { kind, address, keys = null } of [...targets].sort((a, b) => (a.kind < b.kind ? -1 : 1))) {
          if (address === null) {
            await tx.rows('DELETE FROM push_target WHERE tenant_id = $1 AND device_id = $2 AND kind = $3', [tenant_id, device_id, kind]);
            continue;
          }
          await takeAddress(tx, kind, address);
          await tx.rows(upsertTarget, [tenant_id, device_id, kind, address, json(keys), at]);
        }
        return true;
      }),
    async list(tenant_id, device_id) {
      const text = `
SELECT ${columns.pushTarget.of('t')} FROM push_target t
WHERE t.tenant_id = $1 AND ($2::text IS NULL OR t.device_id = $2)
  AND t.device_id NOT IN (SELECT device_id FROM device WHERE tenant_id = $1 AND revoked_at IS NOT NULL)`;
      return (await sql.rows(text, [tenant_id, device_id ?? null], 'push_targets')).map(rowOf<PushTargetRow>);
    },
    async drop({ tenant_id, device_id, kind, registration }) {
      const text = 'DELETE FROM push_target WHERE tenant_id = $1 AND device_id = $2 AND kind = $3 AND registration = $4 RETURNING 1';
      return (await sql.rows(text, [tenant_id, device_id, kind, registration])).length > 0;
    },
  };
}

export function prismaPushRules({ sql }: Database): PushRules {
  const one = 'tenant_id = $1 AND device_id = $2 AND chat_id = $3 AND thread_id = $4';
  return {
    async set(row) {
      const key = [row.tenant_id, row.device_id, row.chat_id ?? '', threadKey(row)];
      const device = 'SELECT 1 FROM device WHERE tenant_id = $1 AND device_id = $2';
      if ((await sql.rows(device, key.slice(0, 2))).length === 0) return false;
      if (row.muted_until === null && row.quiet === null) await sql.rows(`DELETE FROM push_rule WHERE ${one}`, key);
      else
        await sql.rows(
          `INSERT INTO push_rule (tenant_id, device_id, chat_id, thread_id, muted_until, quiet) VALUES ($1, $2, $3, $4, $5, $6)
           ON CONFLICT (tenant_id, device_id, chat_id, thread_id) DO UPDATE SET muted_until = excluded.muted_until, quiet = excluded.quiet`,
          [...key, row.muted_until, json(row.quiet)],
        );
      return true;
    },
    async list(tenant_id) {
      const text = 'SELECT tenant_id, device_id, chat_id, thread_id, muted_until, quiet FROM push_rule WHERE tenant_id = $1';
      const found = await sql.rows<{ chat_id: string }>(text, [tenant_id], 'push_rules');
      return found.map((row) => ({
        ...rowOf<PushRuleRow>(row),
        chat_id: row.chat_id === '' ? null : (row.chat_id as PushRuleRow['chat_id']),
      }));
    },
    async content(tenant_id) {
      const text = 'SELECT content FROM push_setting WHERE tenant_id = $1';
      return (await sql.rows<{ content: PushContent }>(text, [tenant_id], 'push_content'))[0]?.content ?? 'full';
    },
    async setContent(tenant_id, content) {
      const text = `
INSERT INTO push_setting (tenant_id, content) SELECT tenant_id, $2 FROM tenant WHERE tenant_id = $1
ON CONFLICT (tenant_id) DO UPDATE SET content = excluded.content RETURNING 1`;
      return (await sql.rows(text, [tenant_id, content])).length > 0;
    },
  };
}

const note = `
INSERT INTO push_frame (tenant_id, cursor, class, chat_id, thread_id, message_id, picker_id, title, body, except_device_id, at)
SELECT f.* FROM jsonb_to_recordset($1::jsonb) AS f(tenant_id text, cursor bigint, class text, chat_id text, thread_id text, message_id text,
  picker_id text, title text, body text, except_device_id text, at bigint)
JOIN channel c ON c.tenant_id = f.tenant_id AND c.chat_id = f.chat_id AND c.thread_id = f.thread_id
ON CONFLICT DO NOTHING`;

export function prismaPushFrames({ sql }: Database): PushFrames {
  const all = columns.pushFrame.list;
  return {
    async note(rows) {
      const given = json(rows.map((row) => ({ ...row, thread_id: threadKey(row) })));
      try {
        await sql.of(tenantsOf(rows)).rows(note, [given], 'push_note');
      } catch (error) {
        // A lane went between the look and the insert: those that stand are found when it is done again.
        if (sqlState(error) !== foreignKeyViolation) throw error;
        await sql.of(tenantsOf(rows)).rows(note, [given], 'push_note');
      }
    },
    async undecided(tenant_id) {
      const text = `SELECT ${all} FROM push_frame WHERE tenant_id = $1 AND NOT decided ORDER BY cursor`;
      return (await sql.rows(text, [tenant_id], 'push_undecided')).map(rowOf<PushFrameRow>);
    },
    async get(tenant_id, cursors) {
      const text = `SELECT ${all} FROM push_frame WHERE tenant_id = $1 AND cursor = ANY($2::bigint[]) ORDER BY cursor`;
      return (await sql.rows(text, [tenant_id, cursors], 'push_frames')).map(rowOf<PushFrameRow>);
    },
    async decided(tenant_id, cursors) {
      const text = 'UPDATE push_frame SET decided = true WHERE tenant_id = $1 AND cursor = ANY($2::bigint[])';
      await sql.rows(text, [tenant_id, cursors], 'push_decided');
    },
    async overdue(before, limit) {
      const text = 'SELECT tenant_id FROM push_frame WHERE NOT decided AND at <= $1 GROUP BY tenant_id ORDER BY min(at) LIMIT $2';
      return column(await sql.everywhere.rows<Pick<PushFrameRow, 'tenant_id'>>(text, [before, limit]), 'tenant_id');
    },
    async prune(before) {
      // In parts, so that no statement takes long; what is left goes the next time.
      for (const [table, time] of [
        ['push_frame', 'at'],
        ['push_ledger', 'decided_at'],
        ['push_action', 'expires_at'],
      ] as const)
        await sql.everywhere.rows(`DELETE FROM ${table} WHERE ctid IN (SELECT ctid FROM ${table} WHERE ${time} < $1 LIMIT 20000)`, [
          before,
        ]);
    },
  };
}

export function prismaPushStale({ sql }: Database): PushStale {
  return {
    async mark(tenant_id, at) {
      const text = `
INSERT INTO push_stale (tenant_id, at) SELECT tenant_id, $2 FROM tenant WHERE tenant_id = $1
ON CONFLICT (tenant_id) DO UPDATE SET at = greatest(push_stale.at, excluded.at)`;
      await sql.rows(text, [tenant_id, at], 'push_stale');
    },
    due: (before, limit) =>
      sql.everywhere.rows('SELECT tenant_id, at FROM push_stale WHERE at <= $1 ORDER BY at LIMIT $2', [before, limit]),
    async clear(tenant_id, at) {
      await sql.rows('DELETE FROM push_stale WHERE tenant_id = $1 AND at <= $2', [tenant_id, at], 'push_unstale');
    },
  };
}

export function prismaPushOwed({ sql }: Database): PushOwed {
  return {
    async mark(tenant_id, cursor, at) {
      const text = `
INSERT INTO push_owed (tenant_id, cursor, at) SELECT tenant_id, $2, $3 FROM tenant WHERE tenant_id = $1
ON CONFLICT (tenant_id, cursor) DO UPDATE SET at = greatest(push_owed.at, excluded.at)`;
      await sql.rows(text, [tenant_id, cursor, at], 'push_owed');
    },
    due: (before, limit) =>
      sql.everywhere.rows('SELECT tenant_id, cursor, at FROM push_owed WHERE at <= $1 ORDER BY at LIMIT $2', [before, limit]),
    async clear({ tenant_id, cursor, at }) {
      const text = 'DELETE FROM push_owed WHERE tenant_id = $1 AND cursor = $2 AND at <= $3';
      await sql.rows(text, [tenant_id, cursor, at], 'push_noted');
    },
  };
}

const usable = 'tenant_id = $1 AND hash = $2 AND expires_at > $4 AND (used_by IS NULL OR used_by = $3)';

export function prismaPushActions({ sql }: Database): PushActions {
  return {
    async add(rows) {
      const text = `
INSERT INTO push_action (tenant_id, hash, picker_id, device_id, expires_at)
SELECT a.* FROM jsonb_to_recordset($1::jsonb) AS a(tenant_id text, hash text, picker_id text, device_id text, expires_at bigint)
JOIN picker p ON p.tenant_id = a.tenant_id AND p.picker_id = a.picker_id ON CONFLICT DO NOTHING`;
      await sql.of(tenantsOf(rows)).rows(text, [json(rows)], 'push_actions');
    },
    async find(tenant_id, hash, by, now) {
      const text = `SELECT picker_id, device_id FROM push_action WHERE ${usable}`;
      return (await sql.rows<NonNullable<Awaited<ReturnType<PushActions['find']>>>>(text, [tenant_id, hash, by, now]))[0];
    },
    async use(tenant_id, hash, by, now) {
      const text = `UPDATE push_action SET used_by = $3 WHERE ${usable} RETURNING picker_id, device_id`;
      return (await sql.rows<NonNullable<Awaited<ReturnType<PushActions['use']>>>>(text, [tenant_id, hash, by, now]))[0];
    },
  };
}
