import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { cluster } from '@iris/testkit';
import { device } from './media-client.mjs';
import { plain } from './media-plain.mjs';

const MiB = 1024 * 1024;
const chunk = randomBytes(256 * 1024);
const sleep = (ms) => new Promise((resolve) => void setTimeout(resolve, ms));
const middle = (values) => values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)];

/** Milliseconds of a processor that a process has spent. */
function spentBy(pid) {
  const [user, system] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ').slice(11, 13);
  return (Number(user) + Number(system)) * 10;
}
const same = (one, other) => {
  if (one !== other) throw new Error(`${one} is not ${other}`);
};

export async function throughput(server, dir, size_MiB, rounds) {
  const size = size_MiB * MiB;
  const node_args = process.env.IRIS_LOAD_NODE_ARGS?.split(' ') ?? [];
  const set = { s3_url: server.url, spill_dir: dir, media_ready_ms: 1_000, upload_end_ms: 600_000 };
  const all = await cluster({ edges: 1, sessions: 1, workers: 1, set, node_args });
  const tenant = await all.tenant({ file_bytes: 2 ** 40, stored_bytes: 2 ** 40, upload_bytes_per_day: 2 ** 40 });
  const sdk = plain(server.url, chunk);
  const pids = { edge: all.edges[0].pid, server: server.pid, here: process.pid };
  const spent = () => Object.entries(pids).map(([name, pid]) => [name, pid === undefined ? 0 : spentBy(pid)]);
  /** @returns MiB a second, and the milliseconds of a processor that each process spent on a MiB */
  const timed = async (run) => {
    const [began, before] = [performance.now(), spent()];
    await run();
    const rate = size_MiB / ((performance.now() - began) / 1000);
    return { rate, cpu: spent().map(([name, ms], n) => `${name} ${((ms - before[n][1]) / size_MiB).toFixed(2)}`) };
  };
  const results = [];
  for (let round = 0; round < rounds; round++) {
    let sha256;
    const one = await device(all.edges[0].url, tenant.device_token, `d${round}`);
    const isFirst = (result) => {
      sha256 ??= result;
      same(result, sha256);
    };
    const ways = {
      plainUp: async () => isFirst(await sdk.up(`plain/${round}`, size)),
      up: async () => {
        one.say('media.upload.start', { media_ref: `mu${round}`, kind: 'file', mime: 'a/b', size });
        for (let at = 0; at < size; at += chunk.length) await one.send(chunk);
        const ack = await one.ask('media.upload.end', { media_ref: `mu${round}` }, 'end');
        if (ack.type !== 'media.upload.ack') throw new Error(JSON.stringify(ack));
        isFirst(ack.payload.sha256);
      },
      plainDown: async () => same(await sdk.down(`plain/${round}`), sha256),
      down: async () => {
        one.pulled();
        one.say('media.pull', { media_id }, 'pull');
        await one.next((frame) => frame.type === 'media.pull.end');
        same(one.pulled().sha256, sha256);
      },
    };
    let media_id;
    const result = {};
    // Whoever is first has the emptier disk: now one, now the other.
    for (const pair of [
      ['plainUp', 'up'],
      ['plainDown', 'down'],
    ]) {
      for (const name of round % 2 === 0 ? pair : pair.toReversed()) result[name] = await timed(ways[name]);
      if (media_id === undefined)
        media_id = (await one.ask('message.send', { text: 'x', media_refs: [`mu${round}`] }, 'send')).payload.media[0].media_id;
    }
    results.push(result);
    say(result);
    if (round === rounds - 1) await pings(one, media_id, Math.min(size, 512 * MiB));
    one.close();
    await sdk.clear();
    // Equal content is stored once: the next round is to be stored again.
    chunk.writeUInt32LE(round + 1, 0);
  }
  const median = (ours, other) => `${(100 * middle(results.map((one) => one[ours].rate / one[other].rate))).toFixed(0)} %`;
  console.log(`median of ${rounds} rounds of ${size_MiB} MiB: up ${median('up', 'plainUp')}, down ${median('down', 'plainDown')}`);
  sdk.close();
  if (node_args.length > 0) {
    process.kill(all.edges[0].pid, 'SIGTERM');
    await sleep(3_000);
  }
  await all.close();
}

function say({ plainUp, up, plainDown, down }) {
  const beside = (ours, other) =>
    `${ours.rate.toFixed(0)} MiB/s beside ${other.rate.toFixed(0)} (${((100 * ours.rate) / other.rate).toFixed(0)} %), ` +
    `ms of a processor on each MiB: ${ours.cpu.join(', ')} beside ${other.cpu.slice(1).join(', ')}`;
  console.log(`up   ${beside(up, plainUp)}\ndown ${beside(down, plainDown)}`);
}

/** What a frame waits on the line that pulls, beside one with nothing on it. */
async function pings(one, media_id, length) {
  let serial = 0;
  const took = async (isOver) => {
    const all = [];
    while (!isOver()) {
      const began = performance.now();
      await one.ask('ping', { ts: serial }, `p${++serial}`);
      all.push(performance.now() - began);
      await sleep(20);
    }
    all.sort((first, second) => first - second);
    const [p50, p99] = [0.5, 0.99].map((part) => all[Math.floor(all.length * part)].toFixed(1));
    return `p50 ${p50} p99 ${p99} most ${all.at(-1).toFixed(1)} ms (${all.length})`;
  };
  let left = 50;
  const alone = await took(() => left-- === 0);
  let over = false;
  one.say('media.pull', { media_id, length }, 'last');
  const end = one
    .next((frame) => frame.type === 'media.pull.end')
    .then(() => {
      over = true;
    });
  console.log(`pings on the line that pulls: ${await took(() => over)}, with nothing on it: ${alone}`);
  await end;
}
