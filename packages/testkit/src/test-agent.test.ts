import { expect, test } from '@jest/globals';
import type { AnyFrame } from './frames.js';
import { realPatience } from './record.js';
import { testAgent } from './test-agent.js';
import type { WireEvents } from './wire.js';

/** An agent, what it said, and the hand that plays the gateway. */
async function linked() {
  const said: AnyFrame[] = [];
  let events!: WireEvents;
  const agent = testAgent({
    patience: realPatience(1_000),
    install_id: 'i',
    dial: async (given) => {
      events = given;
      return {
        send: (data) => void said.push(JSON.parse(String(data)) as AnyFrame),
        pong() {},
        ping() {},
        close() {},
        cut: () => given.closed(1006, ''),
        pause() {},
        resume() {},
      };
    },
  });
  let epoch = 0;
  const tell = (frame: Omit<AnyFrame, 'payload'> & { payload?: object }) => events.message(JSON.stringify({ v: 1, payload: {}, ...frame }));
  const connect = async (last_seq = 0, turns: object[] = []) => {
    const connecting = agent.connect();
    await Promise.resolve();
    tell({ type: 'hello.ack', payload: { link_id: 'l', epoch: ++epoch, last_seq, heartbeat_ms: 1_000, turns, channels: [] } });
    await connecting;
  };
  const turnStart = (seq: number, turn_id = 'tn') =>
    tell({
      type: 'turn.start',
      seq,
      chat_id: 'c',
      thread_id: null,
      turn_id,
      payload: { kind: 'chat', attempt: 1, message: { message_id: 'm', text: 'q', ts: 1 } },
    });
  await connect();
  said.length = 0;
  return { agent, said, tell, connect, turnStart };
}

test('durable frames are numbered, kept until acked, and sent again in order after a reconnect', async () => {
  const { agent, said, tell, connect, turnStart } = await linked();
  turnStart(1);
  const turn = await agent.turn();
  turn.start('x');
  turn.delta('y');
  turn.stop();
  expect(said.map(({ type, seq }) => [type, seq])).toEqual([
    ['ack', undefined],
    ['turn.accepted', 1],
    ['message.start', 2],
    ['message.delta', undefined],
    ['message.stop', 3],
  ]);
  tell({ type: 'ack', ack: 1 });
  said.length = 0;
  agent.cut();
  turn.commentary('while away');
  await connect(2, [{ turn_id: 'tn', chat_id: 'c', thread_id: null, state: 'running' }]);
  expect(said.slice(1).map(({ type, seq }) => [type, seq])).toEqual([
    ['message.stop', 3],
    ['commentary', 4],
    ['turn.snapshot', 5],
  ]);
  expect(agent.faults).toEqual([]);
});

test('what the gateway must not do is found', async () => {
  const { agent, tell, connect, turnStart } = await linked();
  const faults = (pattern: RegExp) => agent.faults.filter((fault) => pattern.test(fault)).length;
  turnStart(1);
  const turn = await agent.turn();
  turnStart(1);
  expect(agent.faults).toEqual([]);
  turnStart(3);
  expect(faults(/seq 3 after 1/)).toBe(1);
  expect(faults(/turn.start again for tn, which is accepted/)).toBe(1);
  turnStart(4, 'other');
  expect(faults(/other starts while tn runs in its lane/)).toBe(1);
  tell({ type: 'ack', ack: 99 });
  expect(faults(/ack 99 of frames never sent/)).toBe(1);
  tell({ type: 'turn.start', seq: 5, payload: {} });
  expect(faults(/turn.start: payload/)).toBe(1);
  turn.end();
  tell({ type: 'ack', ack: 2 });
  agent.cut();
  await connect(1);
  expect(faults(/last_seq 1, but/)).toBe(1);
});

test('a new process goes on from its disk: unacked frames stay, turns are gone; a new installation has nothing', async () => {
  const { agent, said, connect, turnStart } = await linked();
  turnStart(1);
  const turn = await agent.turn();
  const boot = agent.boot_id;
  agent.restart();
  expect(agent.boot_id).not.toBe(boot);
  expect(turn.state).toBe('abandoned');
  said.length = 0;
  await connect(0);
  expect(said[0]).toMatchObject({ type: 'hello', payload: { install_id: 'i', last_seq: 1, open_turns: [] } });
  expect(said[1]).toMatchObject({ type: 'turn.accepted', seq: 1 });
  agent.restart({ install: true });
  said.length = 0;
  await connect(0);
  expect(said).toMatchObject([{ type: 'hello', payload: { last_seq: 0, open_turns: [] } }]);
});
