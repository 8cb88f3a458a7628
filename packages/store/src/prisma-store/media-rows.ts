import type { MediaRow } from '../rows.js';
import type { MediaRows } from '../store.js';
import { foreignKeyViolation, sqlState } from './connections.js';
import type { Database } from './database.js';
import { json, maybeRowOf } from './mapping.js';

const insert = `
INSERT INTO media (tenant_id, media_id, media_ref, device_id, state, kind, mime, size, filename, sha256, details, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT (tenant_id, media_id) DO NOTHING RETURNING 1`;
const setDetails = `
UPDATE media SET details = $3, mime = coalesce($4, mime) WHERE tenant_id = $1 AND media_id = $2 RETURNING 1`;
/** In the order of ids, so that two calls cannot wait for each other. */
const lock = `
SELECT media_id FROM media WHERE tenant_id = $1 AND media_id = ANY($2) AND (state = 'uploaded' OR attached_by = $3)
ORDER BY media_id FOR UPDATE`;
const attach = `UPDATE media SET state = 'attached', attached_by = $3 WHERE tenant_id = $1 AND media_id = ANY($2)`;

export function prismaMediaRows({ prisma, sql }: Database): MediaRows {
  return {
    async insert({ tenant_id, media_id, media_ref, device_id, state, kind, mime, size, filename, sha256, details, created_at }) {
      const what = [kind, mime, size, filename, sha256, json(details), created_at];
      try {
        return (await sql.rows(insert, [tenant_id, media_id, media_ref, device_id, state, ...what])).length > 0;
      } catch (error) {
        if (sqlState(error) === foreignKeyViolation) return false;
        throw error;
      }
    },
    get: async (tenant_id, media_id) =>
      maybeRowOf<MediaRow>(await prisma.media.findUnique({ where: { tenant_id_media_id: { tenant_id, media_id } } })),
    byRef: async (tenant_id, device_id, media_ref) =>
      maybeRowOf<MediaRow>(await prisma.media.findFirst({ where: { tenant_id, device_id, media_ref }, orderBy: { seq: 'desc' } })),
    setDetails: async (tenant_id, media_id, details, mime) =>
      (await sql.rows(setDetails, [tenant_id, media_id, json(details), mime ?? null])).length > 0,
    attach: (tenant_id, media_ids, by) =>
      sql.transaction(async (tx) => {
        const values = [tenant_id, [...new Set(media_ids)], by ?? null];
        if ((await tx.rows(lock, values)).length !== new Set(media_ids).size) return false;
        await tx.rows(attach, values);
        return true;
      }),
    async remove(tenant_id, media_ids) {
      await prisma.media.deleteMany({ where: { tenant_id, media_id: { in: [...media_ids] } } });
    },
  };
}
