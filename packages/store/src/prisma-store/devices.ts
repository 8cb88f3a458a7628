import type { DeviceRow } from '../rows.js';
import type { Devices } from '../store.js';
import { byKey } from './by-key.js';
import { columns } from './columns.js';
import type { Database } from './database.js';
import { json, maybeRowOf, rowOf } from './mapping.js';

/** The usual hello: a known device. One statement, no lock but its own row's. */
const refresh = `
UPDATE device SET name = $3, caps = $4, token_id = $5, last_seen_at = $6
WHERE tenant_id = $1 AND device_id = $2 AND revoked_at IS NULL RETURNING ${columns.device.list}`;

const insert = `
INSERT INTO device (tenant_id, device_id, name, caps, token_id, created_at, last_seen_at) VALUES ($1, $2, $3, $4, $5, $6, $6)
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
WHERE d.tenant_id = m.tenant_id AND d.device_id = m.device_id AND ${byKey('m', 'd')}`;

export function prismaDevices({ prisma, sql }: Database): Devices {
  return {
    async hello({ tenant_id, device_id, name, caps, token_id, at, max }) {
      const values = [tenant_id, device_id, name, json(caps), token_id, at];
      const [refreshed] = await sql.rows(refresh, values, 'device_refresh');
      if (refreshed) return { row: rowOf<DeviceRow>(refreshed), created: false };
      return sql.transaction(async (tx) => {
        // Devices of one tenant are made one after another, so that their number is exact.
        await tx.rows('SELECT 1 FROM tenant WHERE tenant_id = $1 FOR NO KEY UPDATE', [tenant_id]);
        const [old] = await tx.rows<{ revoked_at: number | null }>(known, [tenant_id, device_id]);
        if (old && old.revoked_at !== null) return 'revoked';
        if (old) return { row: rowOf<DeviceRow>((await tx.rows(refresh, values))[0]!), created: false };
        const [counted] = await tx.rows<{ devices: number }>(count, [tenant_id]);
        if ((counted?.devices ?? 0) >= max) return 'over_quota';
        return { row: rowOf<DeviceRow>((await tx.rows(insert, values))[0]!), created: true };
      });
    },
    get: async (tenant_id, device_id) =>
      maybeRowOf<DeviceRow>(await prisma.device.findUnique({ where: { tenant_id_device_id: { tenant_id, device_id } } })),
    async list(tenant_id) {
      const found = await prisma.device.findMany({ where: { tenant_id }, orderBy: [{ created_at: 'asc' }, { device_id: 'asc' }] });
      return found.map(rowOf<DeviceRow>);
    },
    async confirm(marks) {
      if (marks.length === 0) return;
      const column = (name: keyof (typeof marks)[number]) => marks.map((mark) => mark[name]);
      await sql.rows(confirm, [column('tenant_id'), column('device_id'), column('cursor'), column('at')], 'device_confirm');
    },
    async setLabel(tenant_id, device_id, label) {
      const set = `UPDATE device SET label = $3 WHERE tenant_id = $1 AND device_id = $2 RETURNING ${columns.device.list}`;
      return maybeRowOf<DeviceRow>((await sql.rows(set, [tenant_id, device_id, label]))[0]);
    },
    async revoke(tenant_id, device_id, at) {
      const revoke = 'UPDATE device SET revoked_at = coalesce(revoked_at, $3) WHERE tenant_id = $1 AND device_id = $2 RETURNING 1';
      return (await sql.rows(revoke, [tenant_id, device_id, at])).length > 0;
    },
  };
}
