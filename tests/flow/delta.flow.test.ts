import { type AnyFrame, lane, onStage, type TestDevice } from '@iris/testkit';
import { describe, expect, test } from '@jest/globals';

const delta = { caps: { delta: true } };

/** The text of a running message as an app puts it together: what does not fit is left out. */
function assembled(frames: readonly AnyFrame[], message_id: string | undefined): string {
  let text = '';
  for (const { type, payload } of frames) {
    if (payload.message_id !== message_id) continue;
    if (type === 'message.update') text = payload.text!;
    if (type === 'message.delta' && payload.offset === text.length) text += payload.text!;
  }
  return text;
}
const streamed = (device: TestDevice) => device.frames(['message.update', 'message.delta', 'reasoning.delta']);
const thoughts = (device: TestDevice) => {
  let text = '';
  for (const { payload } of device.frames('reasoning.delta'))
    if (payload.offset === 0) text = payload.text!;
    else if (payload.offset === text.length) text += payload.text!;
  return text;
};

test('CAP7 CAP1 STR5: a device with delta gets pieces in place of whole texts; others get whole texts and no piece', () =>
  onStage(async ({ world, tenant, agent, a, b }) => {
    const d = await tenant.join('reader', { edge: 1, ...delta });
    const e = await tenant.join('both', { edge: 0, caps: { delta: true, cursors: true } });
    await a.send('question');
    const turn = await agent.turn();
    turn.start();
    for (let i = 0; i < 30; i++) {
      turn.delta(`word${i} `);
      await world.advance(50);
    }
    const [{ text }] = [...turn.running.values()] as unknown as [{ text: string }];
    turn.stop();
    turn.end();
    for (const device of [a, b, d, e]) await device.next('agent.idle');
    for (const device of [d, e]) {
      const pieces = streamed(device);
      expect(new Set(pieces.map(({ type }) => type))).toEqual(new Set(['message.delta']));
      expect(pieces[0]!.payload).toMatchObject({ offset: 0, text: 'word0 ' });
      expect(pieces.length).toBeGreaterThan(8);
      expect(text.startsWith(assembled(pieces, pieces[0]!.payload.message_id))).toBe(true);
      // Linear in the text, not quadratic.
      expect(pieces.reduce((sum, { payload }) => sum + payload.text!.length, 0)).toBeLessThanOrEqual(text.length);
      for (const frame of pieces) expect(frame).toMatchObject(lane);
      expect(device.frames('message.stop')[0]!.payload.final_text).toBe(text);
    }
    for (const device of [a, b]) expect(new Set(streamed(device).map(({ type }) => type))).toEqual(new Set(['message.update']));
    expect(e.frames('message.stop')[0]).toHaveProperty('cursor');
    expect(d.frames('message.stop')[0]).not.toHaveProperty('cursor');
  }));

test.each([[true], [false]])('CAP7: caps of the wrong kind are none (delta as text: %s)', (text) =>
  onStage(async ({ tenant, agent, a }) => {
    const d = await tenant.join('odd', { caps: { delta: text ? 'true' : 1, reasoning: null } });
    await a.send('question');
    const turn = await agent.turn();
    turn.start();
    turn.reason('hm');
    turn.delta('x');
    await d.next('message.update');
    turn.stop();
    turn.end();
    await d.next('agent.idle');
    expect(d.frames(['message.delta', 'reasoning.delta'])).toEqual([]);
  }),
);

describe('CAP8: offsets count UTF-16 code units, and no piece splits a character', () => {
  const texts = ['a😀b', '👨‍👩‍👧‍👦', '𝒳𝒴', 'e\u0301', 'مرحبا', '你好', '\u{1f1e9}\u{1f1ea}', '\ufffd', 'x'.repeat(700), '\u{10ffff}'];
  test('whatever the agent writes', () =>
    onStage(async ({ world, tenant, agent, a }) => {
      const d = await tenant.join('reader', delta);
      await a.send('question');
      const turn = await agent.turn();
      turn.start();
      for (const text of [...texts, ...texts]) {
        turn.delta(text);
        await world.advance(120);
      }
      const [{ text }] = [...turn.running.values()] as unknown as [{ text: string }];
      const pieces = streamed(d);
      expect(pieces.length).toBeGreaterThan(texts.length);
      let length = 0;
      for (const { payload } of pieces) {
        expect(payload.offset).toBe(length);
        expect(payload.text).toBe(text.slice(length, length + payload.text!.length));
        expect(payload.text).not.toMatch(/^[\udc00-\udfff]|[\ud800-\udbff]$/);
        length += payload.text!.length;
      }
      expect(length).toBe(text.length);
      turn.stop();
      turn.end();
      await d.next('agent.idle');
    }));

  test('an agent that splits one sends no split on: the two halves are replaced, as text that is broken is', () =>
    onStage(async ({ world, tenant, agent, a }) => {
      const d = await tenant.join('reader', delta);
      await a.send('question');
      const turn = await agent.turn();
      turn.start();
      turn.update('half \ud83d');
      await world.advance(200);
      turn.update('half \ud83d\ude00 whole');
      await world.advance(200);
      turn.update('half \ud83d\ude00 whole and more');
      await world.advance(200);
      const [first, second, third] = streamed(d);
      expect(first).toMatchObject({ type: 'message.delta', payload: { offset: 0, text: 'half \ufffd' } });
      // What stood there is another text now: no piece can say so.
      expect(second).toMatchObject({ type: 'message.update', payload: { text: 'half 😀 whole' } });
      expect(third).toMatchObject({ type: 'message.delta', payload: { offset: 'half 😀 whole'.length, text: ' and more' } });
      turn.stop({ final_text: 'half 😀 whole and more' });
      turn.end();
      await d.next('agent.idle');
    }));
});

describe('CAP9: after a gap the whole text comes', () => {
  test('an agent that begins its text anew: the whole, and pieces go on from there', () =>
    onStage(
      async ({ world, tenant, agent, a }) => {
        const d = await tenant.join('reader', delta);
        await a.send('question');
        const turn = await agent.turn();
        turn.start();
        for (const text of ['thinking about it', 'an answer', 'an answer, longer']) {
          turn.update(text);
          await world.advance(200);
        }
        expect(streamed(d).map(({ type, payload }) => [type, payload.text])).toEqual([
          ['message.delta', 'thinking about it'],
          ['message.update', 'an answer'],
          ['message.delta', ', longer'],
        ]);
        turn.stop();
        turn.end();
        await d.next('agent.idle');
      },
      { unchecked: true },
    ));

  test('HEL22 HEL24: a device that joins in mid-answer is told the whole text, and gets pieces from there', () =>
    onStage(async ({ world, tenant, agent, a }) => {
      await a.send('question');
      const turn = await agent.turn();
      turn.start();
      turn.delta('so far ');
      await a.next('message.update');
      const d = await tenant.join('late', { edge: 1, ...delta });
      turn.delta('and on ');
      await d.next('message.delta');
      await world.advance(200);
      turn.delta('and on');
      await world.advance(200);
      expect(streamed(d).map(({ type, payload }) => [type, payload.offset, payload.text])).toEqual([
        ['message.update', undefined, 'so far '],
        ['message.delta', 7, 'and on '],
        ['message.delta', 14, 'and on'],
      ]);
      await d.sync();
      turn.delta('!');
      await world.advance(200);
      expect(assembled(streamed(d), streamed(d)[0]!.payload.message_id)).toBe('so far and on and on!');
      turn.stop();
      turn.end();
      await d.next('agent.idle');
    }));

  test('OUT9: a device that did not read gets the whole text when it does, then pieces; what does not fit never comes', () =>
    onStage(
      async ({ world, tenant, agent, a }) => {
        const d = await tenant.join('slow', { edge: 1, ...delta });
        await a.send('question');
        const turn = await agent.turn();
        turn.start();
        turn.delta('begin ');
        await d.next('message.delta');
        d.pause();
        for (let i = 0; i < 400; i++) {
          turn.commentary('x'.repeat(2_000));
          if (i % 20 === 0) turn.delta(`w${i} `);
          await world.advance(20);
        }
        d.resume();
        await world.advance(6_000);
        turn.delta('after');
        await world.advance(1_000);
        turn.delta(' all');
        await world.advance(1_000);
        const [{ text }] = [...turn.running.values()] as unknown as [{ text: string }];
        const frames = streamed(d);
        expect(frames.some(({ type }) => type === 'message.update')).toBe(true);
        expect(frames.at(-1)).toMatchObject({ type: 'message.delta', payload: { text: ' all' } });
        expect(assembled(frames, frames[0]!.payload.message_id)).toBe(text);
        turn.stop();
        turn.end();
        await d.next('agent.idle');
        expect(d.frames('commentary')).toHaveLength(400);
      },
      { window_bytes: 64 * 1024 },
    ));

  test('STR9: what the bus loses costs nothing: pieces are made of whole texts', () =>
    onStage(
      async ({ world, tenant, agent, a }) => {
        const d = await tenant.join('reader', { edge: 1, ...delta });
        await a.send('question');
        const turn = await agent.turn();
        turn.start();
        for (let i = 0; i < 40; i++) {
          turn.delta(`w${i} `);
          await world.advance(110);
        }
        const [{ text }] = [...turn.running.values()] as unknown as [{ text: string }];
        const frames = streamed(d);
        expect(text.startsWith(assembled(frames, frames[0]!.payload.message_id))).toBe(true);
        turn.stop();
        turn.end();
        await d.next('agent.idle');
        expect(d.frames('message.stop')[0]!.payload.final_text).toBe(text);
      },
      { faults: { bus_drop: 0.2 }, seed: 4 },
    ));

  test('LNK31: the agent’s link drops in mid-answer: pieces go on from where they were', () =>
    onStage(async ({ world, tenant, agent, a }) => {
      const d = await tenant.join('reader', delta);
      await a.send('question');
      const turn = await agent.turn();
      turn.start();
      turn.delta('one ');
      await d.next('message.delta');
      agent.cut();
      await world.advance(3_000);
      turn.delta('two ');
      await agent.connect();
      await world.advance(500);
      turn.delta('three');
      await world.advance(500);
      const frames = streamed(d);
      expect(assembled(frames, frames[0]!.payload.message_id)).toBe('one two three');
      expect(frames.map(({ type }) => type)).toEqual(['message.delta', 'message.delta', 'message.delta']);
      turn.stop();
      turn.end();
      await d.next('agent.idle');
    }));
});

test('CAP7: several messages at once, in two lanes, are told apart', () =>
  onStage(async ({ world, tenant, agent, a }) => {
    const d = await tenant.join('reader', delta);
    const { payload } = await a.request('channel.create', { name: 'other' });
    await a.send('one');
    const first = await agent.turn();
    await a.send('two', { chat_id: payload.chat_id! });
    const second = await agent.turn();
    const [x, y, z] = [first.start(), first.start(), second.start()];
    for (let i = 0; i < 10; i++) {
      first.delta(`x${i}`, x);
      first.delta(`y${i}`, y);
      second.delta(`z${i}`, z);
      await world.advance(120);
    }
    const starts = d.frames('message.start').map((frame) => frame.payload.message_id);
    expect(starts.map((id) => assembled(streamed(d), id))).toEqual(
      [first.running.get(x), first.running.get(y), second.running.get(z)].map((one) => one!.text),
    );
    for (const [turn, id] of [
      [first, x],
      [first, y],
      [second, z],
    ] as const)
      turn.stop({ message_id: id });
    first.end();
    second.end();
    await world.advance(300);
  }));

describe('CAP10: reasoning', () => {
  test('comes live to devices with the cap, and whole with message.stop to everyone', () =>
    onStage(async ({ world, tenant, agent, a, b }) => {
      const r = await tenant.join('thinker', { edge: 1, caps: { reasoning: true } });
      const both = await tenant.join('all', { edge: 0, caps: { reasoning: true, delta: true, cursors: true } });
      await a.send('question');
      const turn = await agent.turn();
      turn.start();
      for (let i = 0; i < 10; i++) {
        turn.reason(`thought${i} `);
        await world.advance(120);
      }
      turn.delta('the answer');
      await world.advance(200);
      const whole = [...turn.running.values()][0]!.reasoning;
      for (const device of [r, both]) {
        expect(thoughts(device)).toBe(whole);
        const pieces = device.frames('reasoning.delta');
        expect(pieces[0]!.payload.offset).toBe(0);
        expect(pieces.reduce((sum, { payload }) => sum + payload.text!.length, 0)).toBe(whole.length);
      }
      expect(streamed(r).at(-1)).toMatchObject({ type: 'message.update', payload: { text: 'the answer' } });
      expect(streamed(both).at(-1)).toMatchObject({ type: 'message.delta', payload: { offset: 0, text: 'the answer' } });
      turn.stop();
      turn.end();
      for (const device of [a, b, r, both]) {
        await device.next('agent.idle');
        expect(device.frames('message.stop')[0]!.payload.reasoning).toBe(whole);
      }
      for (const device of [a, b]) expect(device.frames('reasoning.delta')).toEqual([]);
    }));

  test('HEL22: a device that joins in mid-thought is told all of it, from offset 0, and goes on', () =>
    onStage(async ({ world, tenant, agent, a }) => {
      await a.send('question');
      const turn = await agent.turn();
      turn.start();
      turn.reason('so far, ');
      turn.delta('x');
      await a.next('message.update');
      await world.advance(200);
      const r = await tenant.join('late', { edge: 1, caps: { reasoning: true } });
      await r.next('reasoning.delta');
      const told = r.frames(['message.start', 'message.update', 'reasoning.delta']);
      expect(told.map(({ type }) => type)).toEqual(['message.start', 'message.update', 'reasoning.delta']);
      turn.reason('and on');
      await world.advance(300);
      expect(r.frames('reasoning.delta').map(({ payload }) => [payload.offset, payload.text])).toEqual([
        [0, 'so far, '],
        [8, 'and on'],
      ]);
      const plain = await tenant.join('plain', { edge: 1 });
      expect(plain.frames('reasoning.delta')).toEqual([]);
      turn.stop();
      turn.end();
      await r.next('agent.idle');
    }));

  test('OUT9: after not reading, all of it from offset 0; nothing of it comes after the stop', () =>
    onStage(async ({ world, tenant, agent, a }) => {
      const r = await tenant.join('slow', { edge: 1, caps: { reasoning: true } });
      await a.send('question');
      const turn = await agent.turn();
      turn.start();
      turn.reason('one ');
      await r.next('reasoning.delta');
      r.pause();
      for (let i = 0; i < 300; i++) {
        turn.commentary('x'.repeat(2_000));
        if (i % 50 === 0) turn.reason(`t${i} `);
        await world.advance(20);
      }
      r.resume();
      await world.advance(6_000);
      expect(thoughts(r)).toBe([...turn.running.values()][0]!.reasoning);
      r.pause();
      for (let i = 0; i < 300; i++) turn.commentary('x'.repeat(2_000));
      turn.reason('never shown live');
      await world.advance(1_000);
      turn.stop();
      turn.end();
      await world.advance(1_000);
      r.resume();
      await r.next('agent.idle');
      const stop = r.received.all.findIndex(({ frame }) => frame.type === 'message.stop');
      expect(r.received.all.slice(stop).filter(({ frame }) => frame.type === 'reasoning.delta')).toEqual([]);
    }));
});
