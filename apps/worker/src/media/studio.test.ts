import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLog } from '@iris/runtime';
import { manualClock } from '@iris/runtime/testing';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { defaultWorkerConfig } from '../config.js';
import { processStudio, type Studio, studioLimits } from './studio.js';

/** Answers as the real one does, but for what keeps it for ever. */
const program = `process.on('message', ({ n, mime }) => {
  if (mime !== 'image/endless') process.send({ n, look: { width: process.pid, height: 1, thumbhash: '', thumb: undefined } });
});`;

let folder: string;
let studio: Studio;
const clock = manualClock();
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'iris-studio-'));
  await writeFile(join(folder, 'child.mjs'), program);
  const limits = studioLimits(defaultWorkerConfig);
  studio = processStudio({ clock, log: silentLog, limits, program: join(folder, 'child.mjs'), seats: 2 });
});
afterEach(async () => {
  await studio.close();
  await rm(folder, { recursive: true });
});
const bytes = new Uint8Array(1);
const processOf = async () => (await studio.look(bytes, 'image/png'))?.width;

test('LIM16: one that takes all its time holds up nobody beside it, and costs its process alone', async () => {
  const first = await processOf();
  const endless = studio.look(bytes, 'image/endless');
  const second = await processOf();
  expect(second).not.toBe(first);
  expect([await processOf(), await processOf()]).toEqual([second, second]);
  await clock.advance(defaultWorkerConfig.media_look_ms);
  expect(await endless).toBeUndefined();
  expect(await processOf()).not.toBe(first);
  expect(clock.timers).toBe(0);
});
