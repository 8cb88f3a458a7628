import { join } from 'node:path';
import { findS3, startS3 } from '@iris/devstack';
import { type Restartable, restartable } from './servers.js';

const program = findS3();

/** Why tests of S3 can't run here; undefined when they can. */
export const noS3 =
  program !== undefined || process.env.IRIS_TEST_S3_URL
    ? undefined
    : 'left out: no S3 server. Set IRIS_TEST_S3_URL (http://access:secret@host:port/bucket?region=us-east-1), or have versitygw in PATH';

/** A server to be killed, frozen and started again; its objects stay. Undefined when there is no program for it. */
export const restartableS3: (() => Promise<Restartable>) | undefined =
  program === undefined
    ? undefined
    : () =>
        restartable('s3', (run_dir, port) =>
          startS3({ program, run_dir, data: join(run_dir, 'data'), access: 'test', secret: 'test-secret', bucket: 'iris', port }),
        );

/** The server the environment names, which may be written to, else one of our own; `end` ends only our own. */
export async function s3ForTests(): Promise<{ url: string; end(): Promise<void> }> {
  const given = process.env.IRIS_TEST_S3_URL;
  if (given) return { url: given, end: async () => {} };
  if (restartableS3 === undefined) throw new Error(noS3);
  return restartableS3();
}
