import { describe, expect, test } from '@jest/globals';
import type { AnyFrame, Payload } from '../frames.js';
import { realPatience } from '../record.js';
import { type TestDevice, testDevice } from '../test-device.js';
import { check, type Evidence, type Logged, type PushEvidence } from './index.js';

const lane = { chat_id: 'android:default', thread_id: null };
type Told = Omit<AnyFrame, 'v' | 'payload'> & { payload?: Payload };

/** A device and the hand that feeds it. */
async function device(first: { sync_cursor?: number; last_pushed_cursor?: number } = {}) {
  let feed: (text: string) => void = () => {};
  let end: (code: number, reason: string) => void = () => {};
  const made: TestDevice = testDevice({
    device_id: 'dev',
    token: 't',
    caps: { cursors: true },
    patience: realPatience(1_000),
    dial: async ({ message, closed }) => {
      feed = message;
      end = closed;
      return { send() {}, pong() {}, ping() {}, close() {}, cut() {}, pause() {}, resume() {} };
    },
  });
  const tell = (...frames: Told[]) => {
    for (const frame of frames) feed(JSON.stringify({ v: 1, payload: {}, ...frame }));
  };
  const join = async (sync_cursor = first.sync_cursor ?? 0, last_pushed_cursor = first.last_pushed_cursor ?? 0) => {
    await made.connect();
    const answered = made.hello();
    const server_caps = { streaming: true, reasoning: true, tools: true, media: true, search: true, push: 'none', pickers: true };
    tell({ type: 'hello.ack', payload: { server_caps, sync_cursor, last_pushed_cursor, channels: [] } });
    await answered;
  };
  await join();
  return { device: made, tell, join, cut: () => end(1006, '') };
}

const message = (message_id: string, text: string, more: Payload = {}): Told => ({
  type: 'message',
  ...lane,
  payload: { message_id, role: 'user', text, ts: 1, ...more },
});
const turn = (id: string): Told[] => [
  { type: 'agent.busy', ...lane, payload: { reason: 'processing' } },
  { type: 'message.start', ...lane, payload: { message_id: id, role: 'assistant' } },
  { type: 'message.stop', ...lane, payload: { message_id: id, final_text: `answer ${id}` } },
  { type: 'agent.idle', ...lane },
];
const at = (cursor: number, frame: Told): Told => ({ ...frame, cursor });
const numbered = (frames: readonly Told[], from = 1) => frames.map((frame, i) => at(from + i, frame));
const logged = (frames: readonly Told[]): Logged[] =>
  numbered(frames).map(({ cursor, ...frame }) => ({ cursor: cursor!, frame: { payload: {}, ...frame } as AnyFrame }));
const row = (frame: Told): Payload => ({ ...frame.payload, text: frame.payload?.final_text ?? frame.payload?.text ?? '' });
const historyOf = (frames: readonly Told[]) =>
  new Map([[lane.chat_id, frames.filter(({ type }) => type === 'message' || type === 'message.stop').map(row)]]);

/** A whole conversation as it should be; each test breaks one thing in it. */
const conversation = [message('m1', 'hello'), ...turn('m2'), message('m3', 'again'), ...turn('m4')];

async function found(
  change: (given: { frames: Told[]; evidence: { -readonly [K in keyof Evidence]: Evidence[K] } }) => Told[] | undefined,
) {
  const one = await device();
  const frames = numbered(conversation);
  const evidence = { devices: [one.device], agents: [], log: logged(conversation), histories: historyOf(conversation) };
  one.tell(...(change({ frames, evidence }) ?? frames));
  return check(evidence);
}
const oracles = (violations: readonly { oracle: string }[]) => [...new Set(violations.map(({ oracle }) => oracle))].sort();

test('a conversation that is as it should be passes', async () => {
  expect(await found(() => undefined)).toEqual([]);
});

describe('what is wrong is found', () => {
  test('O1: a final that a device never got', async () => {
    expect(oracles(await found(({ frames }) => frames.filter(({ cursor }) => cursor !== 4)))).toEqual(['O1']);
  });
  test('O1: a final that history lacks', async () => {
    const violations = await found(({ evidence }) => {
      evidence.histories = historyOf(conversation.slice(0, -4));
      return undefined;
    });
    expect(oracles(violations)).toEqual(['O1']);
  });
  test('O1: a send that was acknowledged and is nowhere', async () => {
    const one = await device();
    const sent = one.device.send('lost');
    one.tell({ ...message('m9', 'lost'), id: 1_001 });
    await sent;
    const violations = check({ devices: [one.device], agents: [], log: [], histories: new Map([[lane.chat_id, []]]) });
    expect(oracles(violations)).toContain('O1');
  });
  test('O2: one send stored twice', async () => {
    const twice = [...conversation, message('m5', 'hello')];
    const one = await device();
    one.tell(...numbered(twice));
    const violations = check({ devices: [one.device], agents: [], log: logged(twice), histories: historyOf(twice) });
    expect(oracles(violations)).toEqual(['O2']);
  });
  test('O2: one message appended twice', async () => {
    const twice = [...conversation, message('m3', 'again')];
    const one = await device();
    one.tell(...numbered(twice));
    const violations = check({ devices: [one.device], agents: [], log: logged(twice), histories: historyOf(conversation) });
    expect(oracles(violations)).toContain('O2');
  });
  test('O2: a frame shown twice on one connection', async () => {
    expect(oracles(await found(({ frames }) => [...frames, frames[0]!]))).toEqual(['O2', 'O3', 'O4']);
  });
  test('O2: a repeat on another connection that is not the same', async () => {
    const one = await device();
    one.tell(...numbered(conversation));
    one.cut();
    await one.join(0);
    one.device.sync(0).catch(() => {});
    one.tell(at(1, message('m1', 'hello?')));
    const log = logged(conversation);
    const violations = check({ devices: [one.device], agents: [], log, histories: historyOf(conversation) });
    expect(oracles(violations)).toEqual(['O2', 'O4', 'O5']);
  });
  test('O3: another order than history', async () => {
    const swapped = [message('m3', 'again'), message('m1', 'hello')];
    const one = await device();
    one.tell(...swapped);
    const log = logged([message('m1', 'hello'), message('m3', 'again')]);
    const histories = historyOf([message('m1', 'hello'), message('m3', 'again')]);
    expect(oracles(check({ devices: [one.device], agents: [], log, histories }))).toEqual(['O3']);
  });
  test('O3: an update after the stop, and one that goes back', async () => {
    const violations = await found(({ frames }) => {
      const update = (text: string): Told => ({ type: 'message.update', ...lane, payload: { message_id: 'm4', text } });
      return [...frames.slice(0, 8), update('answer'), update('ans'), frames[8]!, update('answer m4'), frames[9]!];
    });
    expect(violations.map(({ oracle }) => oracle)).toEqual(['O3', 'O3']);
  });
  test('O4: a cursor given twice, and one that steps back', async () => {
    const one = await device();
    const log = [...logged([message('m1', 'a')]), { cursor: 1, frame: message('m2', 'b') as AnyFrame }];
    const violations = check({ devices: [one.device], agents: [], log, histories: new Map() });
    expect(oracles(violations)).toContain('O4');
  });
  test('O4: a watermark that steps back', async () => {
    const one = await device({ sync_cursor: 7 });
    one.cut();
    await one.join(5);
    expect(oracles(check({ devices: [one.device], agents: [], log: [], histories: new Map() }))).toEqual(['O4']);
    expect(check({ devices: [one.device], agents: [], log: [], histories: new Map(), lossy: true })).toEqual([]);
  });
  test('O5: two answers, none, and internal before its time', async () => {
    const one = await device();
    const pings = [one.device.request('ping'), one.device.request('ping'), one.device.request('ping')];
    one.tell(
      { type: 'pong', id: 1_001, payload: { server_ts: 1 } },
      { type: 'pong', id: 1_001, payload: { server_ts: 1 } },
      { type: 'error', id: 1_002, payload: { code: 'internal', message: 'oh' } },
    );
    pings[2]!.catch(() => {});
    await Promise.all(pings.slice(0, 2));
    const violations = check({ devices: [one.device], agents: [], log: [], histories: new Map() });
    expect(violations.map(({ oracle }) => oracle)).toEqual(['O5', 'O5', 'O5']);
  });
  test('O5: a frame that the frame table does not know', async () => {
    expect(oracles(await found(({ frames }) => [...frames, { type: 'message.stop', ...lane, payload: { message_id: 'x' } }]))).toContain(
      'O5',
    );
  });
  test('O6: a tool frame that never came; not when sync said that something is missing', async () => {
    const tool: Told = { type: 'tool.end', ...lane, payload: { index: 0, name: 'terminal', ok: true } };
    const frames = [...turn('m2').slice(0, 3), tool, turn('m2')[3]!];
    const one = await device();
    one.tell(...numbered(frames).filter(({ type }) => type !== 'tool.end'));
    const evidence = { devices: [one.device], agents: [], log: logged(frames), histories: historyOf(frames) };
    expect(oracles(check(evidence))).toEqual(['O6']);
    const asked = one.device.sync(0);
    one.tell({ type: 'sync.done', id: 1_001, payload: { cursor: 5, truncated: true } });
    await asked;
    expect(check(evidence)).toEqual([]);
  });
  test('O6: busy frames that sync leaves out are not missing, the last one is', async () => {
    const frames = [...turn('m1'), ...turn('m2')];
    const without = async (type: string) => {
      const one = await device();
      one.tell(...numbered(frames).filter((frame) => frame.type !== type));
      return oracles(check({ devices: [one.device], agents: [], log: logged(frames), histories: historyOf(frames) }));
    };
    expect(await without('agent.busy')).toEqual([]);
    expect(await without('agent.idle')).toEqual(['O6']);
  });
  test('O10: two idles, a tool while nothing is busy, a lane that stays busy, an update after idle', async () => {
    const idle: Told = { type: 'agent.idle', ...lane };
    const tool: Told = { type: 'tool.start', ...lane, payload: { index: 1, name: 'x' } };
    const checked = async (frames: Told[], live: Told[] = []) => {
      const one = await device();
      one.tell(...numbered(frames), ...live);
      return oracles(check({ devices: [one.device], agents: [], log: logged(frames), histories: historyOf(frames) }));
    };
    expect(await checked([...turn('m1'), idle])).toEqual(['O10']);
    expect(await checked([...turn('m1'), tool])).toEqual(['O10']);
    expect(await checked(turn('m1').slice(0, 3))).toEqual(['O10']);
    expect(await checked(turn('m1'), [{ type: 'typing', ...lane, payload: { on: true } }])).toEqual(['O10']);
  });
  test('O11: something of a message after its deletion, and a deleted one in history', async () => {
    const gone: Told = { type: 'message.deleted', ...lane, payload: { message_ids: ['m1'] } };
    const frames = [message('m1', 'secret'), gone];
    const one = await device();
    one.tell(...numbered(frames), message('m1', 'secret'));
    const violations = check({ devices: [one.device], agents: [], log: logged(frames), histories: historyOf(frames) });
    expect(violations.filter(({ oracle }) => oracle === 'O11')).toHaveLength(2);
  });
  test('O12: pushed without a decision, said to be sent and not with the provider, one frame twice, and last_pushed_cursor behind or back', async () => {
    const flat = { tenant_id: 't', chat_id: 'c', thread_id: null, class: 'reply', why: null, provider: 'fcm', answer: '200' } as const;
    const row = (cursor: number, more: object = {}): PushEvidence['rows'][number] =>
      ({ ...flat, device_id: 'd', cursor, state: 'sent', covers: cursor, with_cursor: null, attempts: 1, ...more }) as never;
    const judged = (rows: PushEvidence['rows'], cursors: number[], last_pushed_cursor: number) =>
      check({
        devices: [],
        agents: [],
        log: [],
        histories: new Map(),
        pushes: [{ device_id: 'd', rows, last_pushed_cursor, accepted: cursors.map((cursor) => ({ cursor, at: 0 })) }],
      }).map(({ oracle, message }) => [oracle, message]);
    const collapsed = row(1, { state: 'collapsed', with_cursor: 2 });
    expect(judged([collapsed, row(2)], [2, 2], 2)).toEqual([]);
    expect(judged([], [3], 0)).toEqual([['O12', 'd: 3 was pushed, and the ledger does not know it']]);
    expect(judged([row(3)], [], 3)).toEqual([['O12', 'd: the ledger says that 3 was sent as 3, and no provider has it']]);
    expect(judged([row(3), row(3)], [3], 3)).toContainEqual(['O12', 'd: two decisions about 3']);
    expect(judged([row(2, { covers: 3 }), row(3)], [3], 3)).toEqual([['O12', 'd: 3 and 2 were both pushed as 3']]);
    expect(judged([row(3)], [3], 2)).toEqual([['O12', 'd: last_pushed_cursor is 2, and 3 was sent']]);
    expect(judged([collapsed], [], 0)).toEqual([['O12', 'd: 1 is collapsed into 2, which stands for nothing']]);
    const one = await device({ last_pushed_cursor: 7 });
    one.cut();
    await one.join(5, 6);
    expect(oracles(check({ devices: [one.device], agents: [], log: [], histories: new Map() }))).toEqual(['O12']);
  });
});
