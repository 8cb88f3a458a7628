import { fork } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { constants, setPriority } from 'node:os';
import { fileURLToPath } from 'node:url';
import { runAgent } from '@iris/agent-link';
import { collectRarely } from '@iris/runtime';
import { cluster } from '@iris/testkit';
import { device } from './media-client.mjs';

const MiB = 1024 * 1024;
const sleep = (ms) => new Promise((resolve) => void setTimeout(resolve, ms));
const rss = (pid) => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1024;

/** A process of devices or network, which are elsewhere when it is not a test: what it does is not to be at the cost of what is measured. */
const aside = (file, told) => {
  const child = fork(fileURLToPath(new URL(file, import.meta.url)), [JSON.stringify(told)]);
  setPriority(child.pid, constants.priority.PRIORITY_LOW);
  return child;
};
const heard = (child) => new Promise((resolve) => void child.once('message', resolve));

export async function many(server, dir, count, size_MiB, bytes_per_second, line_MiB, seconds) {
  const size = size_MiB * MiB;
  // What this process collects would be taken for what the edge does.
  collectRarely();
  const target = new URL(server.url);
  const way = aside('media-slow-way.mjs', { hostname: target.hostname, port: target.port, bytes_per_second });
  target.port = String((await heard(way)).port);
  const all = await cluster({
    edges: 1,
    sessions: 1,
    workers: 1,
    node_args: process.env.IRIS_LOAD_NODE_ARGS?.split(' ') ?? [],
    set: { s3_url: target.href, spill_dir: dir, upload_end_ms: 3_600_000, media_ready_ms: 1_000 },
  });
  const tenant = await all.tenant({ stored_bytes: 2 ** 40, upload_bytes_per_day: 2 ** 40 });
  const other = await all.tenant();
  const [{ url, pid }] = all.edges;
  const pair = [await device(url, other.device_token, 'a'), await device(url, other.device_token, 'b')];
  // Whoever answers nothing: without it, messages would wait in their lane until it is full.
  const agent = runAgent({ gateway: all.edges[0].agent_url, token: other.agent_token, name: 'quiet', async onTurn() {} });
  const told = { url, token: tenant.device_token, count, size, line_bytes: line_MiB * MiB };
  const uploaders = aside('media-uploaders.mjs', told);
  let now = { sent: 0, ended: 0, failed: [] };
  await heard(uploaders);
  uploaders.on('message', (said) => {
    now = said;
  });
  await sleep(2_000);
  const idle = rss(pid);
  let peak = 0;
  let serial = 0;
  const percentiles = (took) => {
    took.sort((one, next) => one - next);
    return [0.5, 0.99].map((part) => took[Math.floor(took.length * part)].toFixed(1));
  };
  /** Messages from one device to another through everything, and pings that the edge answers by itself, until it is over. */
  const frames = async (isOver) => {
    const [messages, pings] = [[], []];
    while (!isOver()) {
      const text = `n${++serial}`;
      let began = performance.now();
      pair[0].say('message.send', { text });
      await pair[1].next((frame) => frame.type === 'message' && frame.payload.text === text);
      messages.push(performance.now() - began);
      began = performance.now();
      await pair[1].ask('ping', { ts: serial }, `p${serial}`);
      pings.push(performance.now() - began);
      peak = Math.max(peak, rss(pid));
      // Within what one device may send.
      await sleep(60);
    }
    const [m, p] = [percentiles(messages), percentiles(pings)];
    return { text: `messages p50 ${m[0]} p99 ${m[1]} ms, pings p50 ${p[0]} p99 ${p[1]} ms (${messages.length} each)`, m, p };
  };
  const during = (ms, or = () => false) => {
    const until = performance.now() + ms;
    return () => performance.now() >= until || or();
  };
  await frames(during(5_000));
  const quiet = await frames(during(30_000));
  console.log(`without uploads: ${quiet.text}`);
  peak = rss(pid);
  uploaders.send('go');
  const report = (name, { text, m, p }) => {
    const more = (one, before) => `${((100 * one) / before - 100).toFixed(0)} %`;
    console.log(
      `${name}: ${text}; p99 of messages ${more(m[1], quiet.m[1])} more, of pings ${more(p[1], quiet.p[1])}; ` +
        `${(now.sent / MiB).toFixed(0)} MiB taken in, ${now.ended} of ${count} stored, ${now.failed.length} failed ${JSON.stringify(now.failed[0] ?? '')}; ` +
        `edge ${idle.toFixed(0)} MiB idle, ${peak.toFixed(0)} at most (+${(peak - idle).toFixed(0)})`,
    );
  };
  const over = during(seconds * 1_000, () => now.ended + now.failed.length === count);
  report('taking in', await frames(() => over() || now.sent === count * size));
  if (!over()) report('storing', await frames(over));
  for (const one of pair) one.close();
  uploaders.kill();
  await agent.stop();
  way.kill();
  await all.close();
}
