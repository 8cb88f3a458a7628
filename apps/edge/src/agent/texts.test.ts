import { type ManualClock, manualClock } from '@iris/runtime/testing';
import { describe, expect, test } from '@jest/globals';
import { type Texts, texts } from './texts.js';

const turn_id = 'tn1' as never;
function bench(config = { update_ms: 100, update_bytes_per_second: 64 * 1024 }) {
  const clock: ManualClock = manualClock();
  const start = clock.now();
  const sent: { at: number; type: string; body: { payload: { message_id?: string; text?: string; reasoning?: string } } }[] = [];
  const all: Texts = texts({
    clock,
    config,
    send: (type, body) => void sent.push({ at: clock.now() - start, type, body: JSON.parse(Buffer.from(body).toString()) }),
  });
  const delta = (message_id: string, offset: number, text: string) =>
    all.delta({ type: 'message.delta', turn_id, payload: { message_id, offset, text } });
  const said = () => sent.map(({ at, body }) => [at, body.payload.text]);
  return { clock, all, sent, delta, said };
}

describe('texts', () => {
  test('STR5 STR4 LNK23 the first at once, then one each 100 ms with everything so far', async () => {
    const { clock, delta, said, sent } = bench();
    let length = 0;
    for (let i = 0; i < 25; i++) {
      delta('m', length, `${i} `);
      length += `${i} `.length;
      await clock.advance(10);
    }
    await clock.advance(1_000);
    const whole = Array.from({ length: 25 }, (_, i) => `${i} `).join('');
    expect(said().map(([at]) => at)).toEqual([0, 100, 200, 300]);
    expect(said()[0]).toEqual([0, '0 ']);
    expect(said().at(-1)).toEqual([300, whole]);
    expect(sent[0]).toMatchObject({
      type: 'message.update',
      body: { type: 'message.update', turn_id: 'tn1', payload: { message_id: 'm' } },
    });
    expect(clock.timers).toBe(0);
  });

  test('STR4 a long text goes more seldom: its bytes at 64 KiB a second', async () => {
    const { clock, all, delta, said } = bench();
    const long = 'x'.repeat(32 * 1024);
    all.update({ type: 'message.update', turn_id, payload: { message_id: 'm', text: long } });
    delta('m', long.length, 'y');
    await clock.advance(490);
    expect(said()).toHaveLength(1);
    await clock.advance(30);
    expect(said()).toHaveLength(2);
  });

  test('each message has its own pace', async () => {
    const { delta, said } = bench();
    delta('a', 0, 'one');
    delta('b', 0, 'two');
    expect(said()).toEqual([
      [0, 'one'],
      [0, 'two'],
    ]);
  });

  test('LNK23 an offset that does not fit is ignored, with all that follows, until a whole text comes', async () => {
    const { clock, all, delta, said } = bench();
    delta('m', 0, 'abc');
    delta('m', 4, 'x');
    delta('m', 3, 'd');
    await clock.advance(500);
    expect(said()).toEqual([[0, 'abc']]);
    all.update({ type: 'message.update', turn_id, payload: { message_id: 'm', text: 'abcd' } });
    delta('m', 4, 'e');
    await clock.advance(500);
    expect(said().at(-1)![1]).toBe('abcde');
  });

  test('offsets count UTF-16 code units', async () => {
    const { clock, delta, said } = bench();
    delta('m', 0, '👍');
    delta('m', 2, 'é');
    delta('m', 3, '!');
    await clock.advance(200);
    expect(said().at(-1)![1]).toBe('👍é!');
  });

  test('LNK24 reasoning goes along', async () => {
    const { clock, all, delta, sent } = bench();
    all.reasoning({ type: 'reasoning.delta', turn_id, payload: { message_id: 'm', offset: 0, text: 'because' } });
    delta('m', 0, 'so');
    await clock.advance(200);
    expect(sent.map(({ body }) => body.payload)).toEqual([
      { message_id: 'm', text: '', reasoning: 'because' },
      { message_id: 'm', text: 'so', reasoning: 'because' },
    ]);
  });

  test('a frame that belongs behind the text takes the newest along; the end drops it', async () => {
    const { clock, all, delta, said } = bench();
    delta('m', 0, 'a');
    delta('m', 1, 'b');
    all.flush('tn1');
    expect(said()).toEqual([
      [0, 'a'],
      [0, 'ab'],
    ]);
    all.flush('tn1');
    delta('m', 2, 'c');
    all.stop(turn_id, 'm');
    await clock.advance(1_000);
    expect(said()).toHaveLength(2);
    expect(all.size).toBe(0);
    expect(clock.timers).toBe(0);
  });

  test('LNK25 C122: turns that run side by side call their messages alike, and none says the other’s words', async () => {
    const { clock, all, sent } = bench();
    const others = 'tn2' as never;
    const both = [turn_id, others];
    for (const one of both) all.start({ type: 'message.start', turn_id: one, payload: { message_id: 'a1', role: 'assistant' } });
    for (const one of both) all.delta({ type: 'message.delta', turn_id: one, payload: { message_id: 'a1', offset: 0, text: `of ${one}` } });
    all.stop(turn_id, 'a1');
    all.delta({ type: 'message.delta', turn_id: others, payload: { message_id: 'a1', offset: 6, text: ' and on' } });
    await clock.advance(1_000);
    expect(sent.map(({ body }) => body)).toMatchObject([
      { turn_id: 'tn1', payload: { text: 'of tn1' } },
      { turn_id: 'tn2', payload: { text: 'of tn2' } },
      { turn_id: 'tn2', payload: { text: 'of tn2 and on' } },
    ]);
  });

  test('LNK35 a snapshot is what is there from now on', async () => {
    const { clock, all, delta, said } = bench();
    delta('gone', 0, 'x');
    delta('gone', 1, 'y');
    all.snapshot({
      type: 'turn.snapshot',
      turn_id,
      payload: { messages: [{ message_id: 'm', role: 'assistant', text: 'whole', reasoning: 'r' }] },
    } as never);
    delta('m', 5, '!');
    await clock.advance(1_000);
    expect(said().slice(1)).toEqual([[100, 'whole!']]);
    expect(all.size).toBe(1);
    all.endTurn('tn1');
    expect(all.size).toBe(0);
  });

  test('OUT3 other ephemerals: the newest of each key, at the same pace', async () => {
    const { clock, all, sent } = bench();
    const put = (n: number) => all.put('p:1', 'tn1', 'tool.progress', Buffer.from(JSON.stringify({ payload: { text: `${n}` } })));
    for (let n = 0; n < 50; n++) put(n);
    await clock.advance(1_000);
    expect(sent.map(({ at, type, body }) => [at, type, body.payload.text])).toEqual([
      [0, 'tool.progress', '0'],
      [100, 'tool.progress', '49'],
    ]);
  });

  test('an agent that never ends its messages is bounded', () => {
    const { all, delta } = bench();
    for (let i = 0; i < 5_000; i++) delta(`m${i}`, 0, 'x');
    expect(all.size).toBe(4_096);
    all.end();
    expect(all.size).toBe(0);
  });
});
