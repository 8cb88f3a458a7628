import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { Clock } from '@iris/runtime';
import { findProgram, isProgram, run } from './commands.js';
import { askPort, freePort, loopback } from './ports.js';
import { type Server, startServer } from './server.js';

/** Versity S3 Gateway, Apache-2.0: a whole S3 server on a folder. */
const source = 'github.com/versity/versitygw/cmd/versitygw';
const version = 'v1.8.0';
const region = 'us-east-1';

const cache = (): string => join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'iris', 'bin');
const cached = (): string => join(cache(), `versitygw-${version}`);

/** The S3 server's program: built before, or installed on the machine. */
export function findS3(): string | undefined {
  return isProgram(cached()) ? cached() : findProgram('versitygw');
}

/**
 * Build it, once, from the Go module proxy, when Go is there; takes some minutes.
 * @returns undefined when there is no Go or the build failed
 */
export async function buildS3(say: (line: string) => void): Promise<string | undefined> {
  const go = findProgram('go');
  if (go === undefined) return undefined;
  say(`building the S3 server (${source}@${version}), once, about 2 minutes`);
  const folder = join(cache(), `build-${process.pid}`);
  mkdirSync(folder, { recursive: true });
  try {
    const { code, output } = await run(go, ['install', `${source}@${version}`], {
      env: { ...process.env, GOBIN: folder, GOFLAGS: '-trimpath' },
    });
    const built = join(folder, 'versitygw');
    if (code !== 0 || !existsSync(built)) {
      say(`the S3 server could not be built: ${output.trim().split('\n').at(-1)}`);
      return undefined;
    }
    renameSync(built, cached());
    return cached();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * An S3 server that keeps its objects below `data`, with one bucket. Its URL is `http://access:secret@host:port/bucket?region=…`.
 */
export async function startS3(options: {
  readonly program: string;
  readonly data: string;
  readonly run_dir: string;
  readonly access: string;
  readonly secret: string;
  readonly bucket: string;
  readonly port?: number;
  readonly clock?: Clock;
}): Promise<Server> {
  const port = options.port ?? (await freePort());
  const { access, secret, bucket } = options;
  const objects = join(options.data, 'objects');
  const sidecar = join(options.data, 'sidecar');
  // A folder at the top is a bucket. Metadata go beside the objects: extended attributes are not on every file system.
  mkdirSync(join(objects, bucket), { recursive: true });
  mkdirSync(sidecar, { recursive: true });
  return startServer({
    name: 's3',
    program: options.program,
    args: ['--port', `${loopback}:${port}`, '--region', region, '--quiet', '--keep-alive', 'posix', '--sidecar', sidecar, objects],
    env: { ROOT_ACCESS_KEY: access, ROOT_SECRET_KEY: secret },
    port,
    url: `http://${encodeURIComponent(access)}:${encodeURIComponent(secret)}@${loopback}:${port}/${bucket}?region=${region}`,
    run_dir: options.run_dir,
    stop_signal: 'SIGTERM',
    stop_ms: 5_000,
    ready_ms: 10_000,
    ready: async () =>
      (await askPort(port, `GET / HTTP/1.1\r\nHost: ${loopback}\r\nConnection: close\r\n\r\n`, 1_000, options.clock)).startsWith(
        'HTTP/1.1',
      ),
    ...(options.clock === undefined ? {} : { clock: options.clock }),
  });
}
