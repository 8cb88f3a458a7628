import { type Cluster, type ClusterTenant, cluster, type TestAgent, type TestDevice } from '@iris/testkit';
import { afterAll, beforeAll, expect, test } from '@jest/globals';

const frames = 5_000;
const text = 'x'.repeat(2_000);
let all: Cluster;
beforeAll(async () => {
  // Manual collection through the inspector's signal-free way: the process itself, asked by a request to its health port.
  all = await cluster({ edges: 1, sessions: 1, set: { silent_ms: 60_000 }, node_args: ['--expose-gc'] });
}, 120_000);
afterAll(() => all?.close(), 60_000);

/** What of the edge's memory belongs to it alone: the resident set without files. */
async function memoryOf(pid: number): Promise<number> {
  const { readFile } = await import('node:fs/promises');
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/RssAnon:\s+(\d+) kB/.exec(status)?.[1]) * 1024;
}

/** 5,000 durable frames of 2 KB, at a pace that a phone's network could carry. */
async function pour(tenant: ClusterTenant, agent: TestAgent, reader: TestDevice, round: string): Promise<number> {
  await reader.send(`go ${round}`);
  const turn = await agent.turn();
  let most = 0;
  const edge = all.edges[0]!.pid;
  for (let i = 0; i < frames; i++) {
    turn.message(`${round} ${i} ${text}`);
    if (i % 100 === 99) {
      await all.patience.wait(() => agent.unacked.length < 200 || undefined, { describe: () => 'the agent’s frames are not acked' });
      most = Math.max(most, await memoryOf(edge));
    }
  }
  turn.end();
  await reader.next('agent.idle', { within_ms: 60_000 });
  void tenant;
  return most;
}

test('OUT9 C41: a device that stops reading during 5,000 durable frames of 2 KB costs the edge less than 2 MB, and gets all in order on the same socket', async () => {
  const tenant = await all.tenant({ frames_per_second: 100_000, frames_burst: 100_000, outbox_max_frames: 100_000 });
  const agent = tenant.agent();
  await agent.connect();
  const reader = await tenant.join('reader');
  const slow = await tenant.join('slow');

  // The same load twice while both read: the memory that the load itself needs.
  await pour(tenant, agent, reader, 'warm');
  await slow.next('agent.idle', { within_ms: 60_000 });
  const reading = await pour(tenant, agent, reader, 'both-read');
  await slow.next('agent.idle', { within_ms: 60_000 });

  slow.pause();
  const stalled = await pour(tenant, agent, reader, 'one-stalls');
  const cost = stalled - reading;
  slow.resume();
  await slow.next('agent.idle', { within_ms: 120_000 });
  expect(slow.connections).toHaveLength(1);
  const got = slow.frames((frame) => frame.payload.text?.startsWith('one-stalls ') === true);
  expect(got.map(({ payload }) => Number(payload.text!.split(' ')[1]))).toEqual(Array.from({ length: frames }, (_, i) => i));
  expect(cost).toBeLessThan(2 * 1024 * 1024);
}, 300_000);
