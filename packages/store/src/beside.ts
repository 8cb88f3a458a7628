import type pg from 'pg';

/**
 * Migrations that build an index of the largest table, in one transaction as Prisma runs them: nobody can write a message for as long as
 * that takes. Where messages stand already they are done beside the writers instead, step by step, to the same end; what is interrupted goes on.
 */
const beside = new Map([['0003_search', searchIndexes]]);

interface Migration {
  readonly name: string;
  readonly checksum: string;
  readonly sql: string;
}

/**
 * Applies the first of these, up to the last that is done beside the writers, where messages stand; what comes before that one in a transaction each,
 * as Prisma would: were it left to Prisma, all that follow would go with it.
 * @param missing in order
 * @returns how many were done, and written down as applied
 */
export async function appliedBeside(client: pg.Client, missing: readonly Migration[]): Promise<number> {
  const count = missing.findLastIndex(({ name }) => beside.has(name)) + 1;
  if (count === 0) return 0;
  const { rows } = await client.query<{ there: boolean }>(`SELECT to_regclass('message') IS NOT NULL AS there`);
  if (rows[0]?.there !== true) return 0;
  if ((await client.query('SELECT 1 FROM message LIMIT 1')).rows.length === 0) return 0;
  for (const migration of missing.slice(0, count)) {
    const steps = beside.get(migration.name);
    if (steps === undefined) await inOne(client, migration);
    else {
      await steps(client);
      await writeDown(client, migration);
    }
  }
  return count;
}

async function inOne(client: pg.Client, migration: Migration): Promise<void> {
  await client.query('BEGIN');
  try {
    await client.query(migration.sql);
    await writeDown(client, migration);
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {});
    throw error;
  }
}

const writeDown = (client: pg.Client, { name, checksum }: Migration) =>
  client.query(
    `INSERT INTO _prisma_migrations (id, checksum, finished_at, migration_name, applied_steps_count) VALUES (gen_random_uuid(), $1, now(), $2, 1)`,
    [checksum, name],
  );

async function searchIndexes(client: pg.Client): Promise<void> {
  // None of these reads the table; each waits for those who write at that instant, and no longer than they do.
  for (const change of [
    'ADD COLUMN IF NOT EXISTS "search_grams" INTEGER[]',
    'ALTER COLUMN "search_grams" SET STORAGE EXTERNAL',
    'ALTER COLUMN "search_text" TYPE TEXT COLLATE "C"',
    'ALTER COLUMN "search_text" SET STATISTICS 0',
    'ALTER COLUMN "search_grams" SET STATISTICS 0',
  ])
    await client.query(`ALTER TABLE "message" ${change}`);
  await indexBeside(client, 'message_search_grams_idx', 'search_grams_idx', 'USING GIN ("search_grams")');
  await indexBeside(client, 'message_newest', 'newest', '("tenant_id", "cursor", "seq") WHERE "deleted_at" IS NULL');
  await indexBeside(client, 'message_unfolded', 'unfolded', '("tenant_id", "message_id") WHERE "search_grams" IS NULL');
}

/** An index of the partitioned table, partition by partition, while others write. */
async function indexBeside(client: pg.Client, name: string, suffix: string, definition: string): Promise<void> {
  await client.query(`CREATE INDEX IF NOT EXISTS "${name}" ON ONLY "message" ${definition}`);
  const { rows: partitions } = await client.query<{ name: string }>(
    `SELECT c.relname::text AS name FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'message'::regclass ORDER BY 1`,
  );
  for (const partition of partitions) {
    const own = `${partition.name}_${suffix}`;
    const valid = 'SELECT indisvalid AS valid FROM pg_index WHERE indexrelid = to_regclass($1)';
    const { rows } = await client.query<{ valid: boolean }>(valid, [own]);
    // One whose building was interrupted is no use to anybody.
    if (rows[0]?.valid === false) await client.query(`DROP INDEX CONCURRENTLY "${own}"`);
    if (rows[0]?.valid !== true) await client.query(`CREATE INDEX CONCURRENTLY "${own}" ON "${partition.name}" ${definition}`);
    await client.query(`ALTER INDEX "${name}" ATTACH PARTITION "${own}"`);
  }
}
