import type { PairingRow } from '../rows.js';
import type { Pairings } from '../store.js';
import type { Database } from './database.js';
import { maybeRowOf } from './mapping.js';

const create = `
WITH old AS (DELETE FROM pairing WHERE tenant_id = $1 AND (used_by IS NOT NULL OR expires_at <= $4))
INSERT INTO pairing (tenant_id, code_hash, label, created_at, expires_at) VALUES ($1, $2, $3, $4, $5)`;
const use = `
UPDATE pairing SET used_by = $2 WHERE code_hash = $1 AND used_by IS NULL AND expires_at > $3
RETURNING tenant_id, code_hash, label, created_at, expires_at, used_by`;

export function prismaPairings({ sql }: Database): Pairings {
  return {
    async create({ tenant_id, code_hash, label, created_at, expires_at }) {
      await sql.rows(create, [tenant_id, code_hash, label, created_at, expires_at]);
    },
    // Whose it is, only the code says.
    use: async (code_hash, device_id, now) =>
      maybeRowOf<PairingRow>((await sql.everywhere.rows<PairingRow>(use, [code_hash, device_id, now]))[0]),
  };
}
