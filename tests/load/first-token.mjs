/**
 * What the gateway adds to the first token: from the moment at which an agent says `message.start` and its first delta to the moment at which a
 * device has `message.start` (and the first text), beside a bare WebSocket relay of the same frames, in one run, in turn. Real processes on
 * real servers: two edges, two session instances, Postgres, Redis, NATS. Needs redis-server, nats-server and built packages.
 *
 *   node tests/load/first-token.mjs [--rounds 400]
 */

import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';
import { cluster } from '@iris/testkit';
import WebSocket from 'ws';

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '400' } } });
const rounds = Number(values.rounds);

/** Sends on what either side says, and does nothing else. A thread of its own, as the edge is a process of its own. */
const relayCode = `
const { WebSocketServer } = require('ws');
const { parentPort } = require('node:worker_threads');
const server = new WebSocketServer({ host: '127.0.0.1', port: 0, perMessageDeflate: false });
server.on('connection', (socket) => socket.on('message', (data) => { for (const other of server.clients) if (other !== socket) other.send(data.toString()); }));
server.on('listening', () => parentPort.postMessage(server.address().port));`;

const all = await cluster();
try {
  const tenant = await all.tenant();
  const gateway = await throughGateway(tenant);
  const relay = await throughRelay();
  const found = { gateway: [], text: [], relay: [] };
  for (let round = 0; round < rounds + 50; round++) {
    const [by, bare] = [await gateway(round), await relay(round)];
    // The first ones warm up.
    if (round < 50) continue;
    found.gateway.push(by.start);
    found.text.push(by.text);
    found.relay.push(bare.start);
  }
  const at = (numbers, share) => [...numbers].sort((a, b) => a - b)[Math.floor((numbers.length - 1) * share)];
  const line = (name, numbers) =>
    console.log(`${name.padEnd(44)}${[0.5, 0.9, 0.99].map((share) => at(numbers, share).toFixed(2).padStart(9)).join('')}`);
  console.log(`${`ms, ${rounds} turns`.padEnd(44)}      p50      p90      p99`);
  line('gateway: first delta → message.start', found.gateway);
  line('gateway: first delta → first message.update', found.text);
  line('bare relay: the same frame', found.relay);
  const added = [0.5, 0.99].map((share) => (at(found.gateway, share) - at(found.relay, share)).toFixed(2));
  console.log(`the gateway adds ${added[0]} ms at p50, ${added[1]} ms at p99`);
} finally {
  await all.close();
}
process.exit(0);

/** A device on one edge, an agent on the other. */
async function throughGateway({ device_token, agent_token }) {
  const device = await open(all.edges[0].url);
  const agent = await open(all.edges[1].agent_url, ['iris-agent.v1'], { authorization: `Bearer ${agent_token}` });
  let seq = 0;
  let heard = 0;
  let begun;
  let seen;
  const say = (frame) => agent.send(JSON.stringify({ v: 1, ack: heard, ...frame }));
  const durable = (type, turn, payload) =>
    say({ type, seq: ++seq, chat_id: turn.chat_id, thread_id: turn.thread_id, turn_id: turn.turn_id, payload });
  const linked = new Promise((resolve) => {
    agent.on('message', (data) => {
      const frame = JSON.parse(data);
      if (frame.type === 'hello.ack') resolve();
      if (frame.seq !== undefined) heard = frame.seq;
      if (frame.type === 'turn.start') begun?.(frame);
      else if (frame.seq !== undefined) say({ type: 'ack', payload: {} });
    });
  });
  say({ type: 'hello', ack: 0, payload: { agent: 'bench', install_id: 'bench', boot_id: 'bench', last_seq: 0 } });
  await linked;
  device.on('message', (data) => {
    const now = performance.now();
    seen?.(JSON.parse(data), now);
  });
  const greeted = new Promise((resolve) => {
    seen = (frame) => frame.type === 'hello.ack' && resolve();
  });
  device.send(JSON.stringify({ v: 1, type: 'hello', payload: { token: device_token, device_id: 'bench', caps: { min_protocol: 1 } } }));
  await greeted;
  return async (round) => {
    const offered = new Promise((resolve) => {
      begun = resolve;
    });
    let start;
    let text;
    const over = new Promise((resolve) => {
      seen = (frame, now) => {
        if (frame.type === 'message.start') start = now;
        if (frame.type === 'message.update') text ??= now;
        if (frame.type === 'agent.idle') resolve();
      };
    });
    device.send(JSON.stringify({ v: 1, type: 'message.send', payload: { text: `question ${round}` } }));
    const turn = await offered;
    durable('turn.accepted', turn, {});
    // A model thinks before its first token; and so what came before is out of the way.
    await new Promise((resolve) => setTimeout(resolve, 25));
    const message_id = `m${round}`;
    const said = performance.now();
    durable('message.start', turn, { message_id, role: 'assistant' });
    say({
      type: 'message.delta',
      chat_id: turn.chat_id,
      thread_id: turn.thread_id,
      turn_id: turn.turn_id,
      payload: { message_id, offset: 0, text: 'Hello' },
    });
    await until(() => start !== undefined && text !== undefined);
    durable('message.stop', turn, { message_id, final_text: `Hello ${round}` });
    durable('turn.end', turn, { outcome: 'completed' });
    await over;
    return { start: start - said, text: text - said };
  };
}

async function throughRelay() {
  const worker = new Worker(relayCode, { eval: true });
  const port = await new Promise((resolve) => worker.once('message', resolve));
  const device = await open(`ws://127.0.0.1:${port}`);
  const agent = await open(`ws://127.0.0.1:${port}`);
  let got;
  device.on('message', (data) => {
    const now = performance.now();
    if (JSON.parse(data).type === 'message.start') got?.(now);
  });
  return async (round) => {
    await new Promise((resolve) => setTimeout(resolve, 25));
    const arrived = new Promise((resolve) => {
      got = resolve;
    });
    const payload = { message_id: `m${round}`, role: 'assistant' };
    const said = performance.now();
    agent.send(
      JSON.stringify({ v: 1, type: 'message.start', seq: round, chat_id: 'android:default', thread_id: null, turn_id: 'tn_1', payload }),
    );
    return { start: (await arrived) - said };
  };
}

function open(url, protocols = [], headers = {}) {
  const socket = new WebSocket(url, protocols, { headers, perMessageDeflate: false });
  return new Promise((resolve, reject) => {
    socket.once('open', () => resolve(socket));
    socket.once('error', reject);
  });
}

async function until(holds) {
  for (const give_up = Date.now() + 10_000; !holds(); await new Promise((resolve) => setTimeout(resolve, 1)))
    if (Date.now() > give_up) throw new Error('nothing came within 10 s');
}
