import { existsSync, readFileSync } from 'node:fs';
import { startNats, startRedis } from './brokers.js';
import { findProgram, isRoot, run } from './commands.js';
import { type Compose, findCompose } from './compose.js';
import type { DataFolder } from './data-folder.js';
import { howToGet, installPackages, natsServer, type Obtainable, redisServer } from './obtain.js';
import { freePort, loopback } from './ports.js';
import { embeddedPostgres, installedPostgres, type PostgresPrograms, startPostgres } from './postgres.js';
import { buildS3, findS3, startS3 } from './s3.js';
import type { Part } from './supervise.js';

export type ServiceName = 'postgres' | 'redis' | 'nats' | 's3';

/** Which real services are there, and how those that are ours are started. */
export interface ServicePlan {
  /** Where each is, or will be; `s3` is missing when the filesystem stands in for it. */
  readonly urls: ReadonlyMap<ServiceName, string>;
  /** Servers of ours: to be supervised; each keeps its port over restarts. */
  readonly parts: readonly Part[];
  /** What fell back to something else, one line each. */
  readonly notes: readonly string[];
  /** Ends what is not a process of ours (containers). */
  close(): Promise<void>;
}

export interface ServicesWanted {
  readonly folder: DataFolder;
  readonly names: readonly ServiceName[];
  /** URLs that the operator gave: nothing is started for these. */
  readonly given: ReadonlyMap<ServiceName, string>;
  /** Whether packages may be installed though we are not root. */
  readonly install: boolean;
  /** The compose file whose services stand in when an engine runs. */
  readonly compose_file?: string;
  /** Which Postgres is taken for new data when both are there; default: the installed one. */
  readonly postgres?: 'installed' | 'embedded';
  /** False for throw-away data. */
  readonly durable?: boolean;
  say(line: string): void;
}

/**
 * For each service in this order: the URL that was given; a program on the machine; the package manager, when allowed; a
 * container engine, when one answers. Postgres falls back to the embedded server and S3 to the filesystem instead.
 * @throws one line that says what to do when Redis or NATS cannot be had
 */
export async function planServices(wanted: ServicesWanted): Promise<ServicePlan> {
  const { folder, given, say, durable = true } = wanted;
  const { run_dir } = folder;
  const urls = new Map<ServiceName, string>();
  const parts: Part[] = [];
  const notes: string[] = [];
  const needed = (name: ServiceName): boolean => {
    const url = given.get(name);
    if (url !== undefined) urls.set(name, url);
    return wanted.names.includes(name) && url === undefined;
  };
  let compose: Promise<Compose | undefined> | undefined;
  const engine = () => {
    const file = wanted.compose_file;
    compose ??= file === undefined ? Promise.resolve(undefined) : findCompose({ file, project: projectName(folder.dir) });
    return compose;
  };

  if (needed('postgres')) {
    const data = folder.path('postgres');
    const programs = await choosePostgres(data, wanted.postgres);
    if (programs.label === 'embedded' && wanted.postgres !== 'embedded') notes.push('Postgres: the embedded server, from the npm packages');
    const port = await freePort();
    const password = folder.secret('postgres_password');
    urls.set('postgres', `postgresql://iris:${encodeURIComponent(password)}@${loopback}:${port}/iris`);
    parts.push(one('postgres', () => startPostgres({ programs, data, run_dir, password, port, durable })));
  }

  const brokers = [redisServer, natsServer].filter(({ name }) => needed(name));
  const programs = await obtain(brokers, wanted);
  for (const { name, program } of brokers) {
    const path = programs.get(program);
    const containers = path === undefined ? await engine() : undefined;
    if (path === undefined && containers === undefined) {
      const missing = brokers.filter((broker) => !programs.has(broker.program));
      const variables = missing.map((broker) => `IRIS_${broker.name.toUpperCase()}_URL`).join(' and ');
      throw new Error(
        `${missing.map((broker) => broker.program).join(' and ')} not found: ${howToGet(missing)}, or set ${variables}, or start a Docker engine`,
      );
    }
    if (path === undefined) {
      const port = await containers!.up(name);
      urls.set(name, `${name}://${loopback}:${port}`);
      notes.push(`${program}: a container, by docker compose`);
      continue;
    }
    const port = await freePort();
    urls.set(name, `${name}://${loopback}:${port}`);
    const data = folder.path('redis');
    parts.push(
      one(name, () =>
        name === 'redis' ? startRedis({ program: path, run_dir, port, data, keep: durable }) : startNats({ program: path, run_dir, port }),
      ),
    );
  }

  if (needed('s3')) {
    const program = findS3() ?? (await buildS3(say));
    const containers = program === undefined ? await engine() : undefined;
    if (program !== undefined) {
      const port = await freePort();
      const [access, secret, bucket] = ['iris', folder.secret('s3_secret'), 'iris'];
      urls.set('s3', `http://${access}:${encodeURIComponent(secret)}@${loopback}:${port}/${bucket}?region=us-east-1`);
      parts.push(one('s3', () => startS3({ program, data: folder.path('s3'), run_dir, access, secret, bucket, port })));
    } else if (containers !== undefined) {
      const port = await containers.up('s3');
      urls.set('s3', `http://iris:iris-secret@${loopback}:${port}/iris?region=us-east-1`);
      notes.push('S3: a container, by docker compose');
    } else notes.push('S3: a folder that the processes share, since there is neither an S3 server nor Go to build one');
  }
  return { urls, parts, notes, close: async () => (await compose)?.down() };
}

const one = (part: ServiceName, start: Part['start']): Part => ({ part, index: 0, start });

/**
 * Data belong to one major version. New data: the server of the kind that is preferred, else of the other.
 * @throws one line that says what to do
 */
export async function choosePostgres(data: string, prefer: 'installed' | 'embedded' = 'installed'): Promise<PostgresPrograms> {
  const both = [installedPostgres(), await embeddedPostgres()];
  const found = (prefer === 'installed' ? both : both.reverse()).flatMap((programs) => programs ?? []);
  const version = `${data}/PG_VERSION`;
  if (!existsSync(version)) {
    if (found[0] === undefined) throw new Error('there is no Postgres for this system: set IRIS_POSTGRES_URL');
    return found[0];
  }
  const made_by = readFileSync(version, 'utf8').trim();
  for (const programs of found) {
    const { output } = await run(programs.postgres, ['--version']);
    if (/(\d+)/.exec(output)?.[1] === made_by) return programs;
  }
  throw new Error(`the data in ${data} are of Postgres ${made_by}, which is not here: forget them with --fresh, or set IRIS_POSTGRES_URL`);
}

/** Full paths of the programs that are there, installing what is missing when that is allowed. */
async function obtain(servers: readonly Obtainable[], { install, say }: ServicesWanted): Promise<Map<string, string>> {
  const found = () =>
    new Map(
      servers.flatMap(({ program }) => {
        const path = findProgram(program);
        return path === undefined ? [] : [[program, path] as const];
      }),
    );
  const before = found();
  const missing = servers.filter(({ program }) => !before.has(program));
  if (missing.length === 0 || !(isRoot() || install)) return before;
  const fault = await installPackages(
    missing.map(({ debian }) => debian),
    say,
  );
  if (fault !== undefined) say(fault);
  return found();
}

/** Letters and digits of the folder's path: compose allows no others. */
const projectName = (dir: string): string => `iris${dir.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')}`.slice(0, 60);
