import { PrismaPg } from '@prisma/adapter-pg';
import {
  ColumnTypeEnum,
  type SqlDriverAdapter,
  type SqlMigrationAwareDriverAdapterFactory,
  type SqlResultSet,
} from '@prisma/driver-adapter-utils';
import pg from 'pg';

const connect_ms = 10_000;

/**
 * The adapter does not know the type `"char"`, a single letter in the system tables that the engine describes a database by. So such
 * columns get a type number of our own, which the adapter takes for a user's type and hands to a parser; the parser marks the letters,
 * and the column becomes one of characters.
 */
const charOid = 18;
const markedOid = 2_147_000_018;

class Letter {
  constructor(readonly value: unknown) {}
}

class DescribingClient extends pg.Client {
  constructor(config?: string | pg.ClientConfig) {
    super(config);
    // Before the client's own listener, which is added on connecting.
    this.connection.on('rowDescription', (message: { fields: { dataTypeID: number }[] }) => {
      for (const field of message.fields) if (field.dataTypeID === charOid) field.dataTypeID = markedOid;
    });
  }
}

function withLetters({ columnNames, columnTypes, rows }: SqlResultSet): SqlResultSet {
  const letters = new Set((rows[0] ?? []).flatMap((value, column) => (value instanceof Letter ? [column] : [])));
  if (letters.size === 0) return { columnNames, columnTypes, rows };
  return {
    columnNames,
    columnTypes: columnTypes.map((type, column) => (letters.has(column) ? ColumnTypeEnum.Character : type)),
    rows: rows.map((row) => row.map((value) => (value instanceof Letter ? value.value : value))),
  };
}

/** One database, by its address, for the schema engine. */
export function engineDatabase(url: string) {
  const address = new URL(url);
  const name = decodeURIComponent(address.pathname.slice(1)) || 'postgres';

  /** As fields, not as a string: a string's database name would win over the one given beside it. */
  const config = (database: string): pg.ClientConfig => ({
    host: address.hostname.replace(/^\[|\]$/g, ''),
    port: Number(address.port || 5432),
    user: decodeURIComponent(address.username),
    ...(address.password === '' ? {} : { password: decodeURIComponent(address.password) }),
    ...ssl(address.searchParams.get('sslmode')),
    database,
    connectionTimeoutMillis: connect_ms,
  });

  async function adapter(database: string): Promise<SqlDriverAdapter> {
    const pool = new pg.Pool({ ...config(database), max: 4, Client: DescribingClient });
    // A pool whose idle connection dies says so here; the next query says it to its caller.
    pool.on('error', () => {});
    const userDefinedTypeParser = async (oid: number, value: unknown): Promise<unknown> => (oid === markedOid ? new Letter(value) : value);
    const plain = await new PrismaPg(pool, { disposeExternalPool: true, userDefinedTypeParser }).connect();
    const queryRaw = plain.queryRaw.bind(plain);
    plain.queryRaw = async (query) => withLetters(await queryRaw(query));
    // The whole script in one query: split at semicolons, `$$` bodies would break, and half a migration would stay when it fails.
    plain.executeScript = async (script) => {
      await pool.query(script);
    };
    return plain;
  }

  async function withClient<T>(database: string, use: (client: pg.Client) => Promise<T>): Promise<T> {
    const client = new pg.Client(config(database));
    client.on('error', () => {});
    try {
      await client.connect();
      return await use(client);
    } finally {
      await client.end().catch(() => {});
    }
  }
  const maintenance = (sql: string): Promise<void> =>
    withClient('postgres', async (client) => {
      await client.query(sql);
    });

  const factory: SqlMigrationAwareDriverAdapterFactory = {
    provider: 'postgres',
    adapterName: '@prisma/adapter-pg',
    connect: () => adapter(name),
    /** An empty database of its own, gone when it is disposed of. */
    async connectToShadowDb() {
      const shadow = `prisma_shadow_${process.pid}_${Math.random().toString(36).slice(2)}`;
      await maintenance(`CREATE DATABASE ${pg.escapeIdentifier(shadow)}`);
      const drop = (): Promise<void> => maintenance(`DROP DATABASE IF EXISTS ${pg.escapeIdentifier(shadow)} WITH (FORCE)`);
      const connected = await adapter(shadow).catch(async (error: unknown) => {
        await drop();
        throw error;
      });
      const dispose = connected.dispose.bind(connected);
      connected.dispose = async () => {
        await dispose();
        await drop();
      };
      return connected;
    },
  };

  return {
    name,
    factory,
    canConnect: (): Promise<void> => withClient(name, async () => {}),
    create: (): Promise<void> => maintenance(`CREATE DATABASE ${pg.escapeIdentifier(name)}`),
    drop: (): Promise<void> => maintenance(`DROP DATABASE IF EXISTS ${pg.escapeIdentifier(name)} WITH (FORCE)`),
  };
}

/** `sslmode` of the address, with libpq's meaning. */
function ssl(mode: string | null): pg.ClientConfig {
  if (mode === null || mode === 'disable' || mode === 'allow' || mode === 'prefer') return {};
  return { ssl: { rejectUnauthorized: mode === 'verify-ca' || mode === 'verify-full' } };
}

/** Prisma's code for why a database could not be reached. */
export function connectErrorCode(error: unknown): 'P1000' | 'P1001' | 'P1003' {
  const code = (error as { code?: unknown }).code;
  if (code === '3D000') return 'P1003';
  return code === '28P01' || code === '28000' ? 'P1000' : 'P1001';
}
