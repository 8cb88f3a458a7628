/**
 * Uploads and pulls against a real S3 server, with one edge of a real cluster (needs a build, and versitygw or IRIS_TEST_S3_URL):
 *   node tests/load/media.mjs throughput [MiB] [rounds] [folder of the server's data and what waits for it]
 *     an upload and a pull beside plain aws-sdk, each round, and pings on the line that pulls
 *   node tests/load/media.mjs many [uploads] [MiB] [storage bytes/s] [MiB/s of each line] [seconds] [folder of the server's data and what waits for it]
 *     many uploads at once over slow storage: for so long, or until all are stored (50 of 100 MiB at 5 MB/s take 1,000 s)
 * IRIS_LOAD_NODE_ARGS: what else Node is told when it starts the edge, as `--cpu-prof --cpu-prof-dir=…`.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findS3, startS3 } from '@iris/devstack';
import { many } from './media-many.mjs';
import { throughput } from './media-throughput.mjs';

const [what = 'throughput', ...given] = process.argv.slice(2);
const numbers = given.map(Number);
const MiB = 1024 * 1024;
const dir = mkdtempSync(join(given[what === 'throughput' ? 2 : 5] ?? tmpdir(), 'iris-load-'));
const given_url = process.env.IRIS_TEST_S3_URL;
try {
  const server = given_url
    ? { url: given_url, stop: async () => {} }
    : await startS3({ program: findS3(), run_dir: dir, data: join(dir, 'data'), access: 'test', secret: 'test-secret', bucket: 'iris' });
  try {
    if (what === 'throughput') await throughput(server, dir, numbers[0] ?? 1024, numbers[1] ?? 3);
    else await many(server, dir, numbers[0] ?? 50, numbers[1] ?? 100, numbers[2] ?? 5 * MiB, numbers[3] ?? 2.5, numbers[4] ?? 120);
  } finally {
    await server.stop();
  }
} finally {
  rmSync(dir, { recursive: true, force: true });
}
