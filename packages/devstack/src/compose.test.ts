import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { findCompose } from './compose.js';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'iris-compose-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

/** A `docker` that writes down how it was called, and does what `script` says. */
function docker(script: string): string {
  const program = join(dir, 'docker');
  writeFileSync(program, `#!/bin/sh\necho "$IRIS_COMPOSE_REDIS_PORT|$*" >> ${dir}/calls\n${script}\n`, { mode: 0o755 });
  return program;
}
const calls = () => readFileSync(join(dir, 'calls'), 'utf8').trim().split('\n');

test('a service is started on a free port of the loopback address, and taken down at the end', async () => {
  const compose = await findCompose({ file: '/x/docker-compose.yml', project: 'iris-test', program: docker('exit 0') });
  const port = await compose!.up('redis');
  await compose!.down();
  const command = 'compose --project-name iris-test --file /x/docker-compose.yml';
  expect(calls().slice(-2)).toEqual([`127.0.0.1:${port}|${command} up --detach --no-deps --wait redis`, `|${command} down`]);
});

test('an engine that does not answer is no engine', async () => {
  expect(await findCompose({ file: 'f', project: 'p', program: docker('[ "$1" != info ]') })).toBeUndefined();
  expect(await findCompose({ file: 'f', project: 'p', program: join(dir, 'nothing') })).toBeUndefined();
});

test('what docker says when it fails is passed on in one line', async () => {
  const compose = await findCompose({
    file: 'f',
    project: 'p',
    program: docker('case "$*" in *up*) echo first; echo "no space left" >&2; exit 1;; esac'),
  });
  await expect(compose!.up('nats')).rejects.toThrow('docker compose could not start nats: no space left');
});
