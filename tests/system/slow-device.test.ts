import { type Cluster, cluster, type Memory, measurable, memoryOf, type TestAgent, type TestDevice } from '@iris/testkit';
import { afterAll, beforeAll, expect, test } from '@jest/globals';

const MiB = 1024 * 1024;
const frames = 5_000;
const text = 'x'.repeat(2_000);
let all: Cluster;
beforeAll(async () => {
  all = await cluster({ edges: 1, sessions: 1, set: { silent_ms: 60_000 }, node_args: measurable });
}, 120_000);
afterAll(() => all?.close(), 60_000);

/** 5,000 durable frames of 2 KB, at a pace that a phone's network could carry; what the edge holds on to when all of them have passed it. */
async function pour(agent: TestAgent, reader: TestDevice, round: string): Promise<Memory> {
  await reader.send(`go ${round}`);
  const turn = await agent.turn();
  for (let i = 0; i < frames; i++) {
    turn.message(`${round} ${i} ${text}`);
    if (i % 100 === 99) {
      await all.patience.wait(() => agent.unacked.length < 200 || undefined, { describe: () => 'the agent’s frames are not acked' });
    }
  }
  turn.end();
  await reader.next('agent.idle', { within_ms: 60_000 });
  return memoryOf(all.edges[0]!);
}

test('OUT9 C41: a device that stops reading during 5,000 durable frames of 2 KB costs the edge less than 2 MB, and gets all in order on the same socket', async () => {
  const tenant = await all.tenant({ frames_per_second: 100_000, frames_burst: 100_000, outbox_max_frames: 100_000 });
  const agent = tenant.agent();
  await agent.connect();
  const reader = await tenant.join('reader');
  const slow = await tenant.join('slow');

  // The same load while both read: what the load itself leaves behind.
  const reading: Memory[] = [];
  for (const round of ['warm', 'both-read']) {
    reading.push(await pour(agent, reader, round));
    await slow.next('agent.idle', { within_ms: 60_000 });
  }

  slow.pause();
  await pour(agent, reader, 'one-stalls');
  // The kernel's buffers on this machine's loopback may have taken all of that; no phone's network would. They do not take it twice.
  const stalled = await pour(agent, reader, 'still-stalled');
  slow.resume();
  for (const round of ['one-stalls', 'still-stalled']) {
    await slow.next('agent.idle', { within_ms: 120_000 });
    const got = slow.frames((frame) => frame.payload.text?.startsWith(`${round} `) === true);
    expect(got.map(({ payload }) => Number(payload.text!.split(' ')[1]))).toEqual(Array.from({ length: frames }, (_, i) => i));
  }
  expect(slow.connections).toHaveLength(1);

  expect(stalled.reachable - reading[1]!.reachable).toBeLessThan(2 * MiB);
  // Coarser, since an allocator keeps pages; a backlog held by native code would be 10 MB.
  expect(stalled.resident - Math.max(...reading.map(({ resident }) => resident))).toBeLessThan(5 * MiB);
}, 300_000);
