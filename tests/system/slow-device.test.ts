import { type Cluster, cluster, type TestAgent, type TestDevice } from '@iris/testkit';
import { afterAll, beforeAll, expect, test } from '@jest/globals';

const frames = 5_000;
const text = 'x'.repeat(2_000);
let all: Cluster;
beforeAll(async () => {
  // A small young generation: garbage that waits for its collection is not what a connection costs.
  all = await cluster({ edges: 1, sessions: 1, set: { silent_ms: 60_000 }, node_args: ['--max-semi-space-size=1'] });
}, 120_000);
afterAll(() => all?.close(), 60_000);

/** What of the edge's memory belongs to it alone: the resident set without files. */
async function memoryOf(pid: number): Promise<number> {
  const { readFile } = await import('node:fs/promises');
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/RssAnon:\s+(\d+) kB/.exec(status)?.[1]) * 1024;
}

/** 5,000 durable frames of 2 KB, at a pace that a phone's network could carry. */
async function pour(agent: TestAgent, reader: TestDevice, round: string): Promise<number> {
  await reader.send(`go ${round}`);
  const turn = await agent.turn();
  const samples: number[] = [];
  const edge = all.edges[0]!.pid;
  for (let i = 0; i < frames; i++) {
    turn.message(`${round} ${i} ${text}`);
    if (i % 100 === 99) {
      await all.patience.wait(() => agent.unacked.length < 200 || undefined, { describe: () => 'the agent’s frames are not acked' });
      samples.push(await memoryOf(edge));
    }
  }
  turn.end();
  await reader.next('agent.idle', { within_ms: 60_000 });
  // The middle of what was seen from the middle on, when a backlog would be megabytes.
  const later = samples.slice(samples.length / 2).sort((a, b) => a - b);
  return later[Math.floor(later.length / 2)]!;
}

test('OUT9 C41: a device that stops reading during 5,000 durable frames of 2 KB costs the edge less than 2 MB, and gets all in order on the same socket', async () => {
  const tenant = await all.tenant({ frames_per_second: 100_000, frames_burst: 100_000, outbox_max_frames: 100_000 });
  const agent = tenant.agent();
  await agent.connect();
  const reader = await tenant.join('reader');
  const slow = await tenant.join('slow');

  // The same load twice while both read: the memory that the load itself needs.
  await pour(agent, reader, 'warm');
  await slow.next('agent.idle', { within_ms: 60_000 });
  const rounds: number[] = [];
  for (const round of ['both-read', 'both-read-again']) {
    rounds.push(await pour(agent, reader, round));
    await slow.next('agent.idle', { within_ms: 60_000 });
  }
  const reading = Math.max(...rounds);

  slow.pause();
  const stalled = await pour(agent, reader, 'one-stalls');
  const cost = stalled - reading;
  slow.resume();
  await slow.next('agent.idle', { within_ms: 120_000 });
  expect(slow.connections).toHaveLength(1);
  const got = slow.frames((frame) => frame.payload.text?.startsWith('one-stalls ') === true);
  expect(got.map(({ payload }) => Number(payload.text!.split(' ')[1]))).toEqual(Array.from({ length: frames }, (_, i) => i));
  expect(cost).toBeLessThan(2 * 1024 * 1024);
}, 300_000);
