import type { DeviceRow } from '../rows.js';
import type { Devices } from '../store.js';
import { columns } from './columns.js';
import type { Sql } from './connections.js';
import type { Database } from './database.js';
import { json, maybeRowOf, rowOf } from './mapping.js';

/** The usual hello: a known device whose push addresses are what they were. One statement, no lock but its own row's. */
const refresh = `
UPDATE device SET name = $3, caps = $4, token_id = $5, last_seen_at = $8
WHERE tenant_id = $1 AND device_id = $2 AND revoked_at IS NULL
  AND ($6::text IS NULL OR fcm_token = $6) AND ($7::text IS NULL OR ntfy_topic = $7)
RETURNING ${columns.device.list}`;

const upsert = `
INSERT INTO device (tenant_id, device_id, name, caps, token_id, fcm_token, ntfy_topic, created_at, last_seen_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8)
ON CONFLICT (tenant_id, device_id) DO UPDATE SET
  name = excluded.name, caps = excluded.caps, token_id = excluded.token_id, last_seen_at = excluded.last_seen_at,
  fcm_token = coalesce(excluded.fcm_token, device.fcm_token), ntfy_topic = coalesce(excluded.ntfy_topic, device.ntfy_topic)
RETURNING ${columns.device.list}`;

const known = 'SELECT revoked_at FROM device WHERE tenant_id = $1 AND device_id = $2';
const count = 'SELECT count(*) AS devices FROM device WHERE tenant_id = $1 AND revoked_at IS NULL';

/** One statement for all: many edges confirm once a second. */
const confirm = `
UPDATE device d SET watermark = greatest(d.watermark, m.cursor), last_seen_at = greatest(d.last_seen_at, m.at)
FROM (
  SELECT tenant_id, device_id, max(cursor) AS cursor, max(at) AS at
  FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) AS m(tenant_id, device_id, cursor, at)
  GROUP BY tenant_id, device_id
) m
WHERE d.tenant_id = m.tenant_id AND d.device_id = m.device_id`;

interface Push {
  readonly fcm_token?: string | null | undefined;
  readonly ntfy_topic?: string | null | undefined;
}

/** A push address belongs to the device that named it last, of whatever tenant. The lock is the address's, so two cannot both have it. */
async function takePush(tx: Sql, tenant_id: string, device_id: string, push: Push): Promise<void> {
  for (const column of ['fcm_token', 'ntfy_topic'] as const) {
    const address = push[column];
    if (address === null || address === undefined) continue;
    await tx.rows('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [`${column} ${address}`]);
    await tx.rows(`UPDATE device SET ${column} = NULL WHERE ${column} = $3 AND NOT (tenant_id = $1 AND device_id = $2)`, [
      tenant_id,
      device_id,
      address,
    ]);
  }
}

export function prismaDevices({ prisma, sql }: Database): Devices {
  return {
    async hello({ tenant_id, device_id, name, caps, token_id, fcm_token, ntfy_topic, at, max }) {
      const values = [tenant_id, device_id, name, json(caps), token_id, fcm_token, ntfy_topic, at];
      const [refreshed] = await sql.rows(refresh, values, 'device_refresh');
      if (refreshed) return { row: rowOf<DeviceRow>(refreshed), created: false };
      return sql.transaction(async (tx) => {
        // Devices of one tenant are made one after another, so that their number is exact.
        await tx.rows('SELECT 1 FROM tenant WHERE tenant_id = $1 FOR NO KEY UPDATE', [tenant_id]);
        const [old] = await tx.rows<{ revoked_at: number | null }>(known, [tenant_id, device_id]);
        if (old && old.revoked_at !== null) return 'revoked';
        if (!old) {
          const [counted] = await tx.rows<{ devices: number }>(count, [tenant_id]);
          if ((counted?.devices ?? 0) >= max) return 'over_quota';
        }
        await takePush(tx, tenant_id, device_id, { fcm_token, ntfy_topic });
        const [row] = await tx.rows(upsert, values);
        return { row: rowOf<DeviceRow>(row!), created: old === undefined };
      });
    },
    get: async (tenant_id, device_id) =>
      maybeRowOf<DeviceRow>(await prisma.device.findUnique({ where: { tenant_id_device_id: { tenant_id, device_id } } })),
    async list(tenant_id) {
      const found = await prisma.device.findMany({ where: { tenant_id }, orderBy: [{ created_at: 'asc' }, { device_id: 'asc' }] });
      return found.map(rowOf<DeviceRow>);
    },
    setPush: (tenant_id, device_id, push) =>
      sql.transaction(async (tx) => {
        const lock = 'SELECT 1 FROM device WHERE tenant_id = $1 AND device_id = $2 AND revoked_at IS NULL';
        if ((await tx.rows(lock, [tenant_id, device_id])).length === 0) return false;
        await takePush(tx, tenant_id, device_id, push);
        const set = `
UPDATE device SET fcm_token = CASE WHEN $3 THEN $4 ELSE fcm_token END, ntfy_topic = CASE WHEN $5 THEN $6 ELSE ntfy_topic END
WHERE tenant_id = $1 AND device_id = $2 AND revoked_at IS NULL RETURNING 1`;
        const { fcm_token, ntfy_topic } = push;
        const values = [tenant_id, device_id, fcm_token !== undefined, fcm_token ?? null, ntfy_topic !== undefined, ntfy_topic ?? null];
        return (await tx.rows(set, values)).length > 0;
      }),
    async confirm(marks) {
      if (marks.length === 0) return;
      const column = (name: keyof (typeof marks)[number]) => marks.map((mark) => mark[name]);
      await sql.rows(confirm, [column('tenant_id'), column('device_id'), column('cursor'), column('at')], 'device_confirm');
    },
    async revoke(tenant_id, device_id, at) {
      const revoke = 'UPDATE device SET revoked_at = coalesce(revoked_at, $3) WHERE tenant_id = $1 AND device_id = $2 RETURNING 1';
      return (await sql.rows(revoke, [tenant_id, device_id, at])).length > 0;
    },
  };
}
