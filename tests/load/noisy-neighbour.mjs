/**
 * A noisy tenant at ten times its quota beside a quiet one, on the same edge and session instance: how long the quiet one's sends take, alone and
 * beside it, in turns. Needs a build, redis-server and nats-server.
 *
 *   node tests/load/noisy-neighbour.mjs [--rounds 9] [--turns 8] [--seconds 1]
 *
 * The quiet tenant sends as much as the noisy one may, a fifth of its quota; the noisy one may send 100 a second, 20 from each device, and sends 1,000. Alone and
 * beside take turns of a second, so that whatever else the machine does falls on both. What is judged is the p99 of all sends of either; how far it
 * may be off is seen from the same of many drawings of such turns, since slow sends come together: one stray moment of the machine makes several. The client of the noise is a process of its own that does as
 * little as it can and gives way to all others, so that what it costs is not taken for what the service does with it; that it sent what it should is
 * looked at, and so is where the processors' time went.
 *
 * Exit code 1 when the quiet tenant's p99 is more than 20 % above what it is alone, or the noise was none.
 */
import { fork } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { collectRarely } from '@iris/runtime';
import { cluster } from '@iris/testkit';
import WebSocket from 'ws';

const sends_per_second = 20;
const noisyDevices = 5;
const times_quota = 10;
/** Enough of them for a p99 that is not one stray moment. */
const quietDevices = 8;
const most = 1.2;

// What this process collects would be taken for what the service does.
collectRarely();
if (process.argv[2] === 'noise') noise(JSON.parse(process.argv[3]));
else await measure();

/** Each device sends at ten times what it may, until its parent goes. */
function noise({ url, token }) {
  const count = { sent: 0, taken: 0, refused: 0, closed: 0 };
  const lines = Array.from({ length: noisyDevices }, (_, n) => {
    const line = { socket: undefined, chat_id: undefined, sent: 0 };
    const join = () => {
      const socket = new WebSocket(url);
      socket.on('open', () => socket.send(JSON.stringify({ type: 'hello', id: 'hello', payload: { token, device_id: `noisy${n}` } })));
      socket.on('message', (data) => {
        // What it was told is not read: only counted.
        if (data.includes('"rate_limited"')) count.refused++;
        else if (data.includes('"id":"s')) count.taken++;
        else if (data.includes('"hello.ack"')) {
          line.socket = socket;
          if (line.chat_id === undefined) socket.send(JSON.stringify({ type: 'channel.create', id: 'c', payload: { name: `noise ${n}` } }));
        } else if (data.includes('"id":"c"')) {
          line.chat_id = JSON.parse(data).payload.chat_id;
          if (lines.every(({ chat_id }) => chat_id !== undefined)) process.send('ready');
        }
      });
      // Who does not listen to refusals is thrown out, and comes back.
      socket.on('close', () => {
        line.socket = undefined;
        count.closed++;
        setTimeout(join, 500);
      });
      socket.on('error', () => {});
    };
    join();
    return line;
  });
  process.on('disconnect', () => process.exit(0));
  let on = false;
  let since = 0;
  process.on('message', (word) => {
    if (word === 'count') process.send({ ...count });
    else on = word === 'on';
    if (word !== 'on') return;
    since = performance.now();
    for (const line of lines) line.sent = 0;
  });
  let serial = 0;
  setInterval(() => {
    if (!on) return;
    const now = performance.now();
    lines.forEach((line, n) => {
      // They do not know of each other, and so do not speak in the same moment.
      const due = ((now - since - n * 10) / 1_000) * sends_per_second * times_quota;
      for (; line.sent < due; line.sent++) {
        if (line.socket === undefined) continue;
        line.socket.send(JSON.stringify({ type: 'message.send', id: `s${++serial}`, chat_id: line.chat_id, payload: { text: 'noise' } }));
        count.sent++;
      }
    });
  }, 5);
}

async function measure() {
  const { values } = parseArgs({
    options: {
      rounds: { type: 'string', default: '9' },
      turns: { type: 'string', default: '8' },
      seconds: { type: 'string', default: '1' },
    },
  });
  const [rounds, turns, seconds] = [Number(values.rounds), Number(values.turns), Number(values.seconds)];
  const system = await cluster({ edges: 1, sessions: 1 });
  // Nobody answers here, so what is said waits.
  const waiting_per_lane = 1_000_000;
  const quiet = await system.tenant({ waiting_per_lane });
  const loud = await system.tenant({
    // Without what it might have saved up: every moment is one at its limit.
    ...{ sends_per_second, sends_burst: sends_per_second },
    tenant_sends_per_second: sends_per_second * noisyDevices,
    tenant_sends_burst: sends_per_second * noisyDevices,
    waiting_per_lane,
  });
  const users = await Promise.all(Array.from({ length: quietDevices }, (_, n) => quiet.join(`user${n}`)));
  const child = fork(fileURLToPath(import.meta.url), ['noise', JSON.stringify({ url: system.edges[0].url, token: loud.device_token })]);
  setPriority(child.pid, 19);
  await new Promise((resolve) => child.once('message', resolve));
  const counts = () => {
    child.send('count');
    return new Promise((resolve) => child.once('message', resolve));
  };

  const watched = {
    edge: system.edges[0].pid,
    session: system.sessions[0].pid,
    redis: system.redis.pid,
    nats: system.nats.pid,
    noise: child.pid,
    self: process.pid,
  };
  const cpu = () => ({
    ...Object.fromEntries(Object.entries(watched).map(([name, pid]) => [name, spent(pid)])),
    'whole machine': spentByAll(),
  });
  const used = { alone: {}, beside: {} };
  /** A list for each turn. */
  const times = { alone: [], beside: [] };
  const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  const turn = async (how, took) => {
    child.send(how === 'beside' ? 'on' : 'off');
    // What is still under way of the other turn.
    await sleep(300);
    const before = cpu();
    const until = performance.now() + seconds * 1_000;
    const ask = async (user, n) => {
      await sleep(n * 10);
      while (performance.now() < until) {
        const asked = performance.now();
        const answer = await user.send('quiet');
        if (answer.type !== 'message') throw new Error(JSON.stringify(answer));
        took.push(performance.now() - asked);
        await sleep(75);
      }
    };
    await Promise.all(users.map(ask));
    const after = cpu();
    for (const name of Object.keys(after)) used[how][name] = (used[how][name] ?? 0) + after[name] - before[name];
  };
  const round = async () => {
    for (let n = 0; n < turns; n++)
      for (const how of n % 2 ? ['beside', 'alone'] : ['alone', 'beside']) {
        const took = [];
        await turn(how, took);
        times[how].push(took);
      }
  };
  // Until all that is compiled as it runs is compiled.
  await round();
  for (const how of ['alone', 'beside']) {
    used[how] = {};
    times[how] = [];
  }
  const began = await counts();
  for (let n = 0; n < rounds; n++) await round();
  const count = await counts();
  const at = (list, share) => list[Math.min(list.length - 1, Math.floor(list.length * share))];
  const sorted = (lists) => lists.flat().sort((a, b) => a - b);
  const all = { alone: sorted(times.alone), beside: sorted(times.beside) };
  for (const how of ['alone', 'beside']) {
    const cores = Object.entries(used[how]).map(([name, spent]) => `${name} ${((100 * spent) / rounds / turns / seconds).toFixed(0)} %`);
    const said = [0.5, 0.9, 0.95, 0.98, 0.99].map((share) => `p${100 * share} ${at(all[how], share).toFixed(1)}`);
    console.log(`${how}: ${all[how].length} sends, ${said.join(' ')} ms; processor: ${cores.join(', ')}`);
  }
  const drawn = (lists) => sorted(lists.map(() => lists[Math.floor(Math.random() * lists.length)]));
  const ratios = sorted(Array.from({ length: 500 }, () => at(drawn(times.beside), 0.99) / at(drawn(times.alone), 0.99)));
  console.log(`p99 beside ÷ alone: nine drawings of ten lie between ${at(ratios, 0.05).toFixed(2)} and ${at(ratios, 0.95).toFixed(2)}`);
  const rate = (count.sent - began.sent) / rounds / turns / (seconds + 0.3);
  const meant = sends_per_second * noisyDevices * times_quota;
  console.log(
    `the noise: ${rate.toFixed(0)} a second of ${meant} meant; ${count.taken - began.taken} taken, ${count.refused - began.refused} refused, closed ${count.closed - began.closed} times`,
  );
  const ratio = at(all.beside, 0.99) / at(all.alone, 0.99);
  const good = ratio <= most && rate > meant * 0.8;
  console.log(`p99 beside the noise ${((ratio - 1) * 100).toFixed(0)} % above alone: ${good ? 'within 20 %' : 'NOT within 20 %'}`);
  child.disconnect();
  for (const user of users) user.close();
  await system.close();
  process.exit(good ? 0 : 1);
}

/** Seconds of processor, of one process and of everything on the machine. */
function spent(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  const [utime, stime] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 13)
    .map(Number);
  return (utime + stime) / 100;
}
function spentByAll() {
  const [user, nice, system, , , irq, softirq] = readFileSync('/proc/stat', 'latin1').split('\n')[0].split(/\s+/).slice(1).map(Number);
  return (user + nice + system + irq + softirq) / 100;
}
