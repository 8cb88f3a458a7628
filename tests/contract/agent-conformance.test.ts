import { startAgent } from '@iris/agent';
import type { Connect } from '@iris/agent-link';
import { scriptedGateway } from '@iris/agent-link/testing';
import { silentLog, systemClock } from '@iris/runtime';
import { runAgentConformance, type Subject } from '@iris/testkit/agent-conformance';
import { afterAll, expect, test } from '@jest/globals';

interface Frame {
  readonly type: string;
  readonly seq?: number;
  readonly payload: Record<string, unknown>;
}
/** What becomes of a frame on its way: another, or nothing. */
type Way = (frame: Frame) => Frame | undefined;
interface Mutation {
  readonly up?: Way;
  readonly down?: Way;
}

const through =
  (connect: Connect, { up = (frame) => frame, down = (frame) => frame }: Mutation): Connect =>
  (url, options, events) => {
    const pass = (way: Way, to: (text: string) => void) => (text: string) => {
      const frame = way(JSON.parse(text) as Frame);
      if (frame !== undefined) to(JSON.stringify(frame));
    };
    const socket = connect(url, options, { ...events, message: pass(down, events.message) });
    return { ...socket, send: pass(up, socket.send), buffered: socket.buffered };
  };

/** The demo agent on the SDK, mutated on its way to the gateway, and killed and started anew when asked. */
async function ask(mutation: Mutation, options: { only?: string[]; wait_ms: number }) {
  const gateway = scriptedGateway({ clock: systemClock, carry: (deliver) => void setImmediate(deliver) });
  let process = 0;
  const begin = () => {
    const mine = ++process;
    // As after kill -9: nothing that an old process still says arrives.
    const connect: Connect = (url, token, events) => {
      if (mine === process) return through(gateway.net.connect, mutation)(url, token, events);
      systemClock.soon(() => events.closed(1006, ''));
      return { send() {}, close() {}, terminate() {}, buffered: () => 0 };
    };
    return startAgent({ gateway: 'ws://memory/agent', token: 'token', backend: 'demo', pace_ms: 2, connect, log: silentLog });
  };
  let agent = begin();
  const subject: Subject = {
    gateway,
    ask: '/demo echo hello',
    ask_long: '/demo long 30 10',
    wait_ms: options.wait_ms,
    async restart() {
      const old = agent;
      gateway.net.cut();
      agent = begin();
      ending.push(old.stop());
    },
  };
  try {
    return await runAgentConformance(subject, options.only === undefined ? {} : { only: options.only });
  } finally {
    ending.push(agent.stop());
  }
}

/** An agent whose frames are not acked is given some seconds for them; they all end together. */
const ending: Promise<unknown>[] = [];
afterAll(() => Promise.all(ending), 20_000);

test('LNK5 LNK7 LNK11 LNK12 LNK15 LNK18 LNK21 LNK22 LNK33 LNK37: the demo agent holds what the link asks of an agent', async () => {
  const results = await ask({}, { wait_ms: 30_000 });
  expect(results.filter(({ result }) => result !== 'holds')).toEqual([]);
  expect(results.length).toBeGreaterThan(15);
}, 120_000);

let links = 0;
const without =
  (...types: string[]): Way =>
  (frame) =>
    types.includes(frame.type) ? undefined : frame;
const turn = 'a turn is accepted';
const mutations: [string, Mutation, string][] = [
  ['never says that it accepts', { up: without('turn.accepted') }, turn],
  ['never says that a turn has ended', { up: without('turn.end') }, turn],
  ['leaves out a number', { up: (frame) => (frame.seq === undefined || frame.seq < 3 ? frame : { ...frame, seq: frame.seq + 1 }) }, turn],
  ['says nothing', { up: without('message.start', 'message.stop', 'message', 'message.delta', 'message.update') }, turn],
  ['does not answer pings', { up: without('pong') }, 'ping is answered'],
  [
    'does not ack',
    { up: ({ ack: _, ...frame }: Frame & { ack?: number }) => (frame.type === 'ack' ? undefined : frame) },
    'a durable frame of an unknown',
  ],
  [
    'is another installation with each link',
    { up: (frame) => (frame.type === 'hello' ? { ...frame, payload: { ...frame.payload, install_id: `i${++links}` } } : frame) },
    'the line is cut',
  ],
  ['does not hear a stop', { down: (frame) => (frame.type === 'agent.stop' ? { ...frame, type: 'not.known' } : frame) }, 'agent.stop ends'],
  ['does not answer a steer', { up: without('agent.steer') }, 'agent.steer is answered'],
  [
    'takes what it cannot use',
    { up: (frame) => (frame.type === 'agent.steer' ? { ...frame, payload: { accepted: true } } : frame) },
    'a steer for a turn that has ended',
  ],
  ['says nothing of its commands', { up: without('commands.catalog') }, 'commands.catalog'],
  [
    'goes on with a turn whose process is gone',
    {
      up: (frame) =>
        frame.type === 'hello' && frame.payload.last_seq === 0 ? { ...frame, payload: { ...frame.payload, open_turns: ['tn_1'] } } : frame,
    },
    'kill -9',
  ],
];

test.each(mutations)(
  'an agent that %s does not pass',
  async (_, mutation, title) => {
    links = 0;
    const results = await ask(mutation, { only: [title], wait_ms: 400 });
    expect(results.map(({ result }) => result)).toEqual(['fails']);
  },
  60_000,
);
