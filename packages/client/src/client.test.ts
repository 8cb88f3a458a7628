import { describe, expect, test } from '@jest/globals';
import { createClient, type IrisClient } from './client.js';
import type { SocketLike } from './socket.js';
import { keyOf } from './state.js';

type Sent = { type: string; id?: number; chat_id?: string; payload: Record<string, unknown> };

/** The gateway's side of the line, played by the test. */
function gateway() {
  let now = 0;
  const timers: { at: number; run(): void }[] = [];
  const sockets: (SocketLike & { sent: Sent[]; closed?: number | undefined })[] = [];
  const clock = {
    now: () => now,
    after(ms: number, run: () => void) {
      const timer = { at: now + ms, run };
      timers.push(timer);
      return { cancel: () => void (timers.includes(timer) && timers.splice(timers.indexOf(timer), 1)) };
    },
    random: () => 0.5,
  };
  const socket = (): SocketLike => {
    const made: (typeof sockets)[number] = {
      readyState: 1,
      sent: [],
      send: (text) => void made.sent.push(JSON.parse(String(text)) as Sent),
      close(code) {
        made.closed = code ?? 1005;
      },
      onopen: null,
      onmessage: null,
      onclose: null,
      onerror: null,
    };
    sockets.push(made);
    return made;
  };
  const last = () => sockets.at(-1)!;
  let refs = 0;
  const client = createClient({ url: 'ws://gateway/ws', token: 't', device_id: 'd', socket, clock, newRef: () => `ref${++refs}` });
  return {
    client,
    sockets,
    last,
    async advance(ms: number) {
      now += ms;
      for (const timer of timers.filter((t) => t.at <= now)) {
        timers.splice(timers.indexOf(timer), 1);
        timer.run();
      }
      await settle();
    },
    async say(frame: object) {
      last().onmessage?.({ data: JSON.stringify({ v: 1, ...frame }) });
      await settle();
    },
    async greet(sync_cursor = 0) {
      last().onopen?.(undefined as never);
      await this.say({ type: 'hello.ack', payload: { server_caps: {}, sync_cursor, last_pushed_cursor: 0, channels: [] } });
    },
    sent: (type: string) => last().sent.filter((frame) => frame.type === type),
    async answer(type: string, frame: object) {
      await this.say({ ...frame, id: this.sent(type).at(-1)!.id });
    },
    async cut(code = 1006) {
      last().onclose?.({ code, reason: '' });
      await settle();
    },
  };
}
const settle = async (): Promise<void> => {
  for (let i = 0; i < 5; i++) await Promise.resolve();
};
const lane = { chat_id: 'android:default' };
const items = (client: IrisClient) => client.state.lanes.get(keyOf(lane))?.items ?? [];
const message = (message_id: string, text: string, more: object = {}) => ({ message_id, role: 'user', text, ts: 1, ...more });

describe('sending', () => {
  test('a send that lost its line goes again under the same client_ref, and shows once', async () => {
    const g = gateway();
    g.client.open();
    await g.greet();
    const sent = g.client.send(lane, 'hi');
    await settle();
    const first = g.sent('message.send')[0]!;
    await g.cut();
    await g.advance(60_000);
    await g.greet();
    const second = g.sent('message.send')[0]!;
    expect(second.payload.client_ref).toBe(first.payload.client_ref);
    await g.answer('message.send', { type: 'message', ...lane, payload: message('m_1', 'hi', { client_ref: first.payload.client_ref }) });
    await expect(sent).resolves.toMatchObject({ message_id: 'm_1' });
    expect(items(g.client).map((item) => item.key)).toEqual(['m:m_1']);
  });

  test('what is sent before the first hello goes out after it, in order', async () => {
    const g = gateway();
    g.client.open();
    void g.client.send(lane, 'one');
    void g.client.send(lane, 'two');
    await g.greet();
    expect(g.sent('message.send').map((frame) => frame.payload.text)).toEqual(['one', 'two']);
  });

  test('a refused send rejects and is marked, and nothing is sent again', async () => {
    const g = gateway();
    g.client.open();
    await g.greet();
    const sent = g.client.send(lane, ' ');
    const refused = expect(sent).rejects.toMatchObject({ code: 'unsupported' });
    await settle();
    await g.answer('message.send', { type: 'error', payload: { code: 'unsupported', message: 'text' } });
    await refused;
    expect(items(g.client)[0]).toMatchObject({ state: 'failed', failure: 'text' });
  });

  test('rate_limited waits as long as it was told', async () => {
    const g = gateway();
    g.client.open();
    await g.greet();
    void g.client.send(lane, 'hi');
    await settle();
    await g.answer('message.send', { type: 'error', payload: { code: 'rate_limited', message: '', retry_after_ms: 700 } });
    await g.advance(699);
    expect(g.sent('message.send')).toHaveLength(1);
    await g.advance(1);
    expect(g.sent('message.send')).toHaveLength(2);
  });
});

describe('cursors', () => {
  test('a line lost before sync.done syncs again from where the state really ends', async () => {
    const g = gateway();
    g.client.open();
    await g.greet(5);
    await g.answer('sync', { type: 'sync.done', payload: { cursor: 5 } });
    await g.cut();
    await g.advance(60_000);
    await g.greet(5);
    await g.say({ type: 'message', ...lane, cursor: 9, payload: message('m_9', 'live before the gap was filled') });
    await g.cut();
    await g.advance(60_000);
    await g.greet(5);
    expect(g.sent('sync')[0]!.payload.cursor).toBe(5);
  });

  test('acks once a second, and at once after a frame worth a push', async () => {
    const g = gateway();
    g.client.open();
    await g.greet();
    await g.answer('sync', { type: 'sync.done', payload: { cursor: 0 } });
    await g.say({ type: 'tool.start', ...lane, cursor: 1, payload: { index: 0, name: 'x' } });
    await g.say({ type: 'agent.busy', ...lane, cursor: 2, payload: { reason: 'tool' } });
    expect(g.sent('ack')).toHaveLength(0);
    await g.advance(1_000);
    expect(g.sent('ack').map((frame) => frame.payload.cursor)).toEqual([2]);
    await g.say({ type: 'message', ...lane, cursor: 3, payload: message('m', 'x', { role: 'assistant' }) });
    expect(g.sent('ack').map((frame) => frame.payload.cursor)).toEqual([2, 3]);
  });

  test('truncated: what is finished is forgotten and read again from history', async () => {
    const g = gateway();
    g.client.open();
    await g.greet();
    await g.answer('sync', { type: 'sync.done', payload: { cursor: 1 } });
    const loaded = g.client.loadHistory(lane);
    await settle();
    await g.answer('history', { type: 'history', ...lane, payload: { messages: [message('m_1', 'old')], has_more: false } });
    await loaded;
    await g.cut();
    await g.advance(60_000);
    await g.greet();
    await g.answer('sync', { type: 'sync.done', payload: { cursor: 900, truncated: true } });
    expect(items(g.client)).toEqual([]);
    await g.answer('history', {
      type: 'history',
      ...lane,
      payload: { messages: [message('m_1', 'old'), message('m_2', 'missed')], has_more: false },
    });
    expect(items(g.client).map((item) => item.key)).toEqual(['m:m_1', 'm:m_2']);
  });
});

describe('the line', () => {
  test.each([4401, 4403, 4409])('does not come back after %i', async (code) => {
    const g = gateway();
    g.client.open();
    await g.greet();
    await g.cut(code);
    await g.advance(600_000);
    expect(g.sockets).toHaveLength(1);
    expect(g.client.connection).toMatchObject({ kind: 'ended', code });
  });

  test('a line that hears nothing is given up', async () => {
    const g = gateway();
    g.client.open();
    await g.greet();
    for (let i = 0; i < 3; i++) await g.advance(15_000);
    await g.advance(60_000);
    expect(g.sockets).toHaveLength(2);
  });
});

describe('a turn', () => {
  test('streams into one bubble; deltas that do not fit wait for the next whole text', async () => {
    const g = gateway();
    g.client.open();
    await g.greet();
    await g.say({ type: 'message.start', ...lane, payload: { message_id: 'm', role: 'assistant' } });
    await g.say({ type: 'message.delta', ...lane, payload: { message_id: 'm', offset: 0, text: 'ab' } });
    await g.say({ type: 'message.delta', ...lane, payload: { message_id: 'm', offset: 5, text: 'zz' } });
    expect(items(g.client)[0]).toMatchObject({ state: 'streaming', message: { text: 'ab' } });
    await g.say({ type: 'message.update', ...lane, payload: { message_id: 'm', text: 'abcdezz' } });
    await g.say({ type: 'message.stop', ...lane, payload: { message_id: 'm', final_text: 'done', reasoning: 'why', ts: 7 } });
    expect(items(g.client)).toEqual([
      {
        kind: 'message',
        key: 'm:m',
        state: 'done',
        message: { message_id: 'm', role: 'assistant', text: 'done', reasoning: 'why', ts: 7 },
      },
    ]);
    await g.say({ type: 'message.update', ...lane, payload: { message_id: 'm', text: 'late' } });
    expect(items(g.client)[0]).toMatchObject({ message: { text: 'done' } });
  });

  test('an answer that was overtaken by what was said meanwhile stands behind it, as in history', async () => {
    const g = gateway();
    g.client.open();
    await g.greet();
    await g.say({ type: 'message.start', ...lane, payload: { message_id: 'm', role: 'assistant' } });
    await g.say({ type: 'message', ...lane, payload: message('m_2', 'wait') });
    await g.say({ type: 'message.stop', ...lane, payload: { message_id: 'm', final_text: 'done', ts: 7 } });
    expect(items(g.client).map((item) => item.key)).toEqual(['m:m_2', 'm:m']);
  });

  test('the device whose answer won sees its picker closed', async () => {
    const g = gateway();
    g.client.open();
    await g.greet();
    await g.say({ type: 'picker.choice', ...lane, payload: { picker_id: 'p', title: '?', choices: [{ value: 'a', label: 'A' }] } });
    const answered = g.client.select('p', 'a');
    await settle();
    expect(items(g.client)[0]).not.toHaveProperty('closed');
    await g.answer('picker.select', { type: 'ack', payload: { ok: true } });
    await answered;
    expect(items(g.client)[0]).toMatchObject({ closed: { picker_id: 'p', value: 'a' } });
  });

  test('tools of the next turn are rows of their own', async () => {
    const g = gateway();
    g.client.open();
    await g.greet();
    for (const name of ['first', 'second']) {
      await g.say({ type: 'tool.start', ...lane, payload: { index: 0, name } });
      await g.say({ type: 'tool.end', ...lane, payload: { index: 0, name, ok: true } });
    }
    expect(items(g.client).map((item) => item.kind === 'tool' && item.tool.name)).toEqual(['first', 'second']);
  });

  test('TYP2 typing that nobody ends ends by itself; what is heard meanwhile keeps it up', async () => {
    const at = gateway();
    at.client.open();
    await at.greet();
    const lane = { chat_id: 'c', thread_id: null };
    const typing = () => at.client.state.lanes.get(keyOf(lane))?.typing;
    await at.say({ type: 'typing', ...lane, payload: { on: true } });
    await at.advance(8_000);
    await at.say({ type: 'typing', ...lane, payload: { on: true } });
    await at.advance(8_000);
    expect(typing()).toBe(true);
    await at.advance(4_000);
    expect(typing()).toBe(false);
    await at.say({ type: 'typing', ...lane, payload: { on: true } });
    await at.say({ type: 'typing.stop', ...lane, payload: {} });
    expect(typing()).toBe(false);
  });
});
