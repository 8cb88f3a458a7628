import type { MediaId, ObjectId, TenantId } from '@iris/protocol';
import type { MediaRow } from '../rows.js';
import type { Content, MediaRows } from '../store.js';
import { foreignKeyViolation, type Sql, sqlState } from './connections.js';
import type { Database } from './database.js';
import { json, maybeRowOf, rowOf } from './mapping.js';

const day_ms = 24 * 3_600_000;

const names =
  'tenant_id, media_id, media_ref, device_id, state, kind, mime, size, filename, sha256, details, created_at, object_id, processed, uploaded_sha256';
const insert = `
INSERT INTO media (${names}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
ON CONFLICT (tenant_id, media_id) DO NOTHING RETURNING 1`;
const byId = `SELECT ${names} FROM media WHERE tenant_id = $1 AND media_id = $2`;

/** What a tenant may store is decided for one upload at a time. */
const lockTenant = 'SELECT 1 FROM tenant WHERE tenant_id = $1 FOR NO KEY UPDATE';
const begunBefore = `DELETE FROM media WHERE tenant_id = $1 AND device_id = $2 AND media_ref = $3 AND state = 'uploading' RETURNING object_id, size`;
const stored = `
SELECT (SELECT coalesce(sum(size), 0) FROM media_object WHERE tenant_id = $1 AND state = 'stored')::bigint
  + (SELECT coalesce(sum(size), 0) FROM media WHERE tenant_id = $1 AND state = 'uploading')::bigint AS bytes`;
const countDay = `
INSERT INTO media_day (tenant_id, day, bytes) VALUES ($1, $2, $3)
ON CONFLICT (tenant_id, day) DO UPDATE SET bytes = media_day.bytes + excluded.bytes RETURNING bytes`;

/** Held until the row that is to name it stands, so that it is not removed meanwhile. */
const sameContent = `SELECT object_id FROM media_object WHERE tenant_id = $1 AND sha256 = $2 AND state = 'stored' FOR SHARE`;
const newObject = `
INSERT INTO media_object (tenant_id, object_id, state, size, sha256, created_at) VALUES ($1, $2, 'stored', $3, $4, $5)
ON CONFLICT (tenant_id, sha256) WHERE state = 'stored' DO NOTHING RETURNING object_id`;
const looseObject = `
INSERT INTO media_object (tenant_id, object_id, state, size, sha256, created_at) VALUES ($1, $2, 'removing', $3, '', $4)
ON CONFLICT (tenant_id, object_id) DO NOTHING`;

const lockRow = `${byId} FOR UPDATE`;
const restarted = 'UPDATE media SET object_id = $3 WHERE tenant_id = $1 AND media_id = $2';
const completed = `
UPDATE media SET state = 'uploaded', object_id = $3, size = $4, sha256 = $5, uploaded_sha256 = $5 WHERE tenant_id = $1 AND media_id = $2 RETURNING ${names}`;
const described = `
UPDATE media SET kind = $3, mime = $4, details = $5, processed = true, object_id = $6, size = $7, sha256 = $8
WHERE tenant_id = $1 AND media_id = $2 RETURNING ${names}`;

/** In the order of ids, so that two calls cannot wait for each other. */
const lockFree = `
SELECT media_id FROM media WHERE tenant_id = $1 AND media_id = ANY($2) AND (state = 'uploaded' OR attached_by = $3)
ORDER BY media_id FOR UPDATE`;
const attach = `UPDATE media SET state = 'attached', attached_by = $3 WHERE tenant_id = $1 AND media_id = ANY($2)`;
const lockShown = `
SELECT media_id FROM media WHERE tenant_id = $1 AND media_id = ANY($2) AND state IN ('uploaded', 'offered', 'attached')
ORDER BY media_id FOR UPDATE`;
const show = `UPDATE media SET state = $3 WHERE tenant_id = $1 AND media_id = ANY($2) AND state <> 'attached'`;

const remove = `
DELETE FROM media m WHERE m.tenant_id = $1 AND m.media_id = ANY($2)
  AND NOT EXISTS (SELECT 1 FROM message_media f WHERE f.tenant_id = m.tenant_id AND f.media_id = m.media_id) RETURNING m.object_id, m.size`;
const lockObjects = 'SELECT 1 FROM media_object WHERE tenant_id = $1 AND object_id = ANY($2) ORDER BY object_id FOR UPDATE';
/** A statement of its own, behind the lock: so it sees every row that whoever held the object has made. */
const loosen = `
UPDATE media_object o SET state = 'removing' WHERE o.tenant_id = $1 AND o.object_id = ANY($2)
  AND NOT EXISTS (SELECT 1 FROM media m WHERE m.tenant_id = o.tenant_id AND m.object_id = o.object_id)`;
const stale = `
SELECT tenant_id, media_id FROM media WHERE state <> 'attached' AND (state = 'unused'
  OR (state IN ('uploading', 'uploaded') AND created_at < $1) OR (state = 'offered' AND created_at < $2)) ORDER BY created_at LIMIT $3`;

const valuesOf = (row: MediaRow): unknown[] => [
  ...[row.tenant_id, row.media_id, row.media_ref, row.device_id, row.state, row.kind, row.mime, row.size, row.filename, row.sha256],
  ...[json(row.details), row.created_at, row.object_id, row.processed, row.uploaded_sha256],
];

/** The object that stands for this content; a second one with the same is to be removed. */
async function keep(tx: Sql, tenant_id: TenantId, { object_id, size, sha256 }: Content, at: number): Promise<ObjectId> {
  for (;;) {
    const [made] = await tx.rows<{ object_id: ObjectId }>(newObject, [tenant_id, object_id, size, sha256, at]);
    if (made !== undefined) return object_id;
    const [same] = await tx.rows<{ object_id: ObjectId }>(sameContent, [tenant_id, sha256]);
    // Removed between the two: then there is room for this one.
    if (same === undefined) continue;
    if (same.object_id !== object_id) await tx.rows(looseObject, [tenant_id, object_id, size, at]);
    return same.object_id;
  }
}

/** Objects that rows named until now; one that never came to be is removed as well, should it come yet. */
async function letGo(tx: Sql, tenant_id: TenantId, gone: readonly { object_id: string | null; size: number }[], at: number) {
  const ids = gone.flatMap(({ object_id }) => object_id ?? []);
  if (ids.length === 0) return;
  for (const { object_id, size } of gone) if (object_id !== null) await tx.rows(looseObject, [tenant_id, object_id, size, at]);
  await tx.rows(lockObjects, [tenant_id, ids]);
  await tx.rows(loosen, [tenant_id, ids]);
}

export function prismaMediaRows({ prisma, sql, clock }: Database): MediaRows {
  return {
    begin: (row, { stored_bytes, day_bytes }) =>
      sql
        .transaction(async (tx) => {
          const { tenant_id, media_id, device_id, media_ref, size, created_at } = row;
          if ((await tx.rows(lockTenant, [tenant_id])).length === 0) return 'no_tenant';
          if ((await tx.rows(byId, [tenant_id, media_id])).length > 0) return 'begun';
          const before = await tx.rows<{ object_id: string | null; size: number }>(begunBefore, [tenant_id, device_id, media_ref]);
          const undo = () => {
            throw new Refused();
          };
          const [used] = await tx.rows<{ bytes: number }>(stored, [tenant_id]);
          if ((used?.bytes ?? 0) + size > stored_bytes) return undo();
          await letGo(tx, tenant_id, before, created_at);
          const [today] = await tx.rows<{ bytes: number }>(countDay, [tenant_id, Math.floor(created_at / day_ms), size]);
          if ((today?.bytes ?? 0) > day_bytes) throw new Refused('day_full');
          await tx.rows(insert, valuesOf(row));
          return 'begun' as const;
        })
        .catch((error: unknown) => {
          if (error instanceof Refused) return error.why;
          throw error;
        }),
    restart: (tenant_id, media_id, object_id) =>
      sql.transaction(async (tx) => {
        const row = maybeRowOf<MediaRow>((await tx.rows(lockRow, [tenant_id, media_id]))[0]);
        if (row?.state !== 'uploading') return false;
        if (row.object_id === object_id) return true;
        await tx.rows(restarted, [tenant_id, media_id, object_id]);
        await letGo(tx, tenant_id, [row], clock.now());
        return true;
      }),
    complete: (tenant_id, media_id, content) =>
      sql.transaction(async (tx) => {
        const row = maybeRowOf<MediaRow>((await tx.rows(lockRow, [tenant_id, media_id]))[0]);
        if (row === undefined || row.state === 'unused') return undefined;
        if (row.state !== 'uploading') return row;
        if (row.object_id !== content.object_id) return undefined;
        const object_id = await keep(tx, tenant_id, content, clock.now());
        return rowOf<MediaRow>((await tx.rows(completed, [tenant_id, media_id, object_id, content.size, content.sha256]))[0]!);
      }),
    insert: (row, content) =>
      sql
        .transaction(async (tx) => {
          if ((await tx.rows(lockTenant, [row.tenant_id])).length === 0) return false;
          if ((await tx.rows(byId, [row.tenant_id, row.media_id])).length > 0) return false;
          const object_id = await keep(tx, row.tenant_id, content, clock.now());
          return (await tx.rows(insert, valuesOf({ ...row, object_id }))).length > 0;
        })
        .catch((error: unknown) => {
          if (sqlState(error) === foreignKeyViolation) return false;
          throw error;
        }),
    get: async (tenant_id, media_id) =>
      maybeRowOf<MediaRow>(await prisma.media.findUnique({ where: { tenant_id_media_id: { tenant_id, media_id } } })),
    byRef: async (tenant_id, device_id, media_ref) =>
      maybeRowOf<MediaRow>(await prisma.media.findFirst({ where: { tenant_id, device_id, media_ref }, orderBy: { seq: 'desc' } })),
    describe: (tenant_id, media_id, { kind, mime, details }, content) =>
      sql.transaction(async (tx) => {
        const row = maybeRowOf<MediaRow>((await tx.rows(lockRow, [tenant_id, media_id]))[0]);
        if (row === undefined || row.state === 'uploading' || row.state === 'unused') return undefined;
        const object_id = content === undefined ? row.object_id : await keep(tx, tenant_id, content, clock.now());
        const { size, sha256 } = content ?? row;
        const [next] = await tx.rows(described, [tenant_id, media_id, kind, mime, json(details), object_id, size, sha256]);
        if (object_id !== row.object_id) await letGo(tx, tenant_id, [row], clock.now());
        return rowOf<MediaRow>(next!);
      }),
    attach: (tenant_id, media_ids, by) =>
      sql.transaction(async (tx) => {
        const values = [tenant_id, [...new Set(media_ids)], by ?? null];
        if ((await tx.rows(lockFree, values)).length !== new Set(media_ids).size) return false;
        await tx.rows(attach, values);
        return true;
      }),
    show: (tenant_id, media_ids, as) =>
      sql.transaction(async (tx) => {
        const ids = [...new Set(media_ids)];
        if ((await tx.rows(lockShown, [tenant_id, ids])).length !== ids.length) return false;
        await tx.rows(show, [tenant_id, ids, as]);
        return true;
      }),
    remove: (tenant_id, media_ids) =>
      sql.transaction(async (tx) => {
        const gone = await tx.rows<{ object_id: string | null; size: number }>(remove, [tenant_id, media_ids]);
        await letGo(tx, tenant_id, gone, clock.now());
      }),
    stale: ({ loose_before, offered_before, limit }) =>
      sql.everywhere.rows<{ tenant_id: TenantId; media_id: MediaId }>(stale, [loose_before, offered_before, limit]),
    removing: (limit) =>
      sql.everywhere.rows<{ tenant_id: TenantId; object_id: ObjectId }>(
        `SELECT tenant_id, object_id FROM media_object WHERE state = 'removing' ORDER BY created_at LIMIT $1`,
        [limit],
      ),
    removed: async (tenant_id, object_id) =>
      void (await sql.rows(`DELETE FROM media_object WHERE tenant_id = $1 AND object_id = $2 AND state = 'removing'`, [
        tenant_id,
        object_id,
      ])),
    storedBytes: async (tenant_id) => (await sql.rows<{ bytes: number }>(stored, [tenant_id]))[0]?.bytes ?? 0,
  };
}

/** Takes the transaction back. */
class Refused extends Error {
  constructor(readonly why: 'full' | 'day_full' = 'full') {
    super(why);
  }
}
