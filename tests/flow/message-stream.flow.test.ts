import { lane, onStage, sendBytes } from '@iris/testkit';
import { expect, test } from '@jest/globals';

const types = (frames: readonly { type: string }[]) => frames.map(({ type }) => type);

test('STR1 STR2 STR3 MSG8 MSG9 TRN1 RCP1 LNK19: a streamed turn, as every device sees it', () =>
  onStage(async ({ world, agent, a, b }) => {
    await a.send('question');
    const turn = await agent.turn({ accept: false });
    await world.advance(1_000);
    expect(a.frames('read.receipt')).toEqual([]);
    turn.accept();
    turn.start();
    turn.reason('because');
    turn.delta('The ');
    await world.advance(200);
    turn.delta('answer');
    await world.advance(200);
    turn.stop({ model: 'qwen', tokens: 11, runtime: { model: 'qwen', context_pct: 38, cwd: '~', latency: 1.5 } });
    turn.end();
    await b.next('agent.idle');
    await a.next('agent.idle');
    const story = ['agent.busy', 'message.start', 'message.update', 'message.update', 'message.stop', 'agent.idle'];
    expect(types(b.frames((frame) => frame.type !== 'message' && frame.type !== 'hello.ack' && frame.type !== 'status'))).toEqual(story);
    expect(types(a.frames((frame) => story.includes(frame.type)))).toEqual(story);
    expect(a.frames('read.receipt')).toMatchObject([{ ...lane, payload: { message_id: a.frames('message')[0]?.payload.message_id } }]);
    expect(b.frames('read.receipt')).toEqual([]);
    expect(b.frames('message.update').map(({ payload }) => payload.text)).toEqual(['The ', 'The answer']);
    const id = b.frames('message.start')[0]?.payload.message_id;
    for (const frame of b.frames(['message.update', 'message.stop'])) expect(frame.payload.message_id).toBe(id);
    expect(b.frames('message.stop')[0]?.payload).toMatchObject({
      final_text: 'The answer',
      reasoning: 'because',
      model: 'qwen',
      tokens: 11,
      runtime: { model: 'qwen', context_pct: 38, cwd: '~', latency: 1.5 },
    });
    expect(b.frames('agent.busy')[0]).toMatchObject({ ...lane, payload: { reason: 'processing' } });
  }));

test('MSG9: a final without a runtime gets one', () =>
  onStage(async ({ agent, a }) => {
    await a.send('question');
    const turn = await agent.turn();
    turn.message('whole');
    turn.end();
    expect((await a.next((frame) => frame.payload.role === 'assistant')).payload.runtime).toBeDefined();
  }));

test('STR4 STR5 ORD4: updates are paced, the first at once, each with the newest text', () =>
  onStage(async ({ world, agent, a, b }) => {
    await a.send('count');
    const turn = await agent.turn();
    turn.start();
    await world.settle();
    const start = world.time.now();
    turn.delta('0 ');
    await b.next('message.update');
    expect(world.time.now() - start).toBeLessThan(5);
    for (let i = 1; i < 100; i++) {
      await world.advance(10);
      turn.delta(`${i} `);
    }
    const updates = b.frames('message.update');
    expect(updates.length).toBeGreaterThanOrEqual(8);
    expect(updates.length).toBeLessThanOrEqual(11);
    turn.stop();
    const stop = await b.next('message.stop');
    expect(stop.payload.final_text).toMatch(/^0 1 2 .* 99 $/);
    turn.end();
    await b.next('agent.idle');
    await world.advance(1_000);
    expect(types(b.frames()).at(-1)).toBe('agent.idle');
  }));

test('STR4: long texts come less often: 64 KiB a second', () =>
  onStage(async ({ world, agent, a, b }) => {
    await a.send('long');
    const turn = await agent.turn();
    turn.start();
    for (let i = 0; i < 100; i++) {
      turn.delta('x'.repeat(640));
      await world.advance(100);
    }
    const bytes = b.frames('message.update').reduce((sum, { payload }) => sum + payload.text!.length, 0);
    expect(bytes).toBeLessThan(11 * 64 * 1024);
    expect(bytes).toBeGreaterThan(3 * 64 * 1024);
    turn.stop();
    turn.end();
    expect((await b.next('message.stop')).payload.final_text).toHaveLength(64_000);
    await b.next('agent.idle');
  }));

test('STR6 STR9 ORD4 ORD5: a lost bus message costs an update, never the end; nothing comes after the stop', () =>
  onStage(async ({ world, agent, a, b }) => {
    await a.send('question');
    const turn = await agent.turn();
    turn.start();
    await b.next('message.start');
    world.backbone.faults = { ...world.backbone.faults, bus_drop: 0.5, bus_reorder: 0.3, bus_repeat: 0.3, bus_late_ms: [1, 400] };
    for (let i = 0; i < 30; i++) {
      turn.delta(`${i} `);
      await world.advance(50);
    }
    turn.stop();
    turn.end();
    for (const device of [a, b]) {
      const stop = await device.next('message.stop', { within_ms: 30_000 });
      expect(stop.payload.final_text).toMatch(/ 29 $/);
      await device.next('agent.idle', { within_ms: 30_000 });
    }
    world.backbone.faults = { ...world.backbone.faults, bus_drop: 0, bus_reorder: 0, bus_repeat: 0 };
    await world.advance(3_000);
  }));

test('MSG10 C18: live, by sync and in history a message is the same', () =>
  onStage(async ({ world, tenant, agent, a }) => {
    const away = await tenant.join('desk');
    const from = away.connections[0]?.ack?.payload.sync_cursor;
    away.cut();
    await a.send('question', { client_ref: 'r' });
    const turn = await agent.turn();
    turn.start();
    turn.delta('answer');
    turn.stop({ reasoning: 'thought', model: 'm', tokens: 3 });
    turn.message('and a whole one');
    turn.end();
    await a.next('agent.idle');
    await away.join();
    await away.sync(from);
    const plain = (frame: { payload: object }) => frame.payload;
    const finals = (device: typeof a) => device.frames(['message', 'message.stop']).map(plain);
    expect(finals(away)).toEqual(finals(a));
    const rows = (await away.history(lane)).payload.messages!;
    const [question, stopped, whole] = finals(a) as Record<string, unknown>[];
    expect(rows[0]).toEqual(question);
    const { final_text, ...rest } = stopped!;
    expect(rows[1]).toEqual({ ...rest, role: 'assistant', text: final_text });
    expect(rows[2]).toEqual(whole);
    await world.settle();
  }));

test('MSG10 MSG14 C18: so is one with files, of a device and of the agent; only the links are each device’s own', () =>
  onStage(async ({ world, tenant, agent, a, b }) => {
    const away = await tenant.join('desk', { caps: { media_url: true } });
    const from = away.connections[0]?.ack?.payload.sync_cursor;
    away.cut();
    for (const [media_ref, size] of [
      ['mu_1', 70_000],
      ['mu_2', 3],
    ] as const) {
      const bytes = new Uint8Array(size).fill(7);
      a.say('media.upload.start', { media_ref, kind: 'image', mime: 'image/png', size, filename: `${media_ref}.png` });
      sendBytes(a, bytes);
      expect(await a.request('media.upload.end', { media_ref })).toMatchObject({ type: 'media.upload.ack' });
    }
    const echo = await a.send('two files', { media_refs: ['mu_1', 'mu_2'] });
    const turn = await agent.turn();
    // An agent shows again what it was given.
    const [first] = (turn.offer.message as unknown as { media: { media_id: string }[] }).media;
    const { url: _, ...entry } = first as { media_id: string; url?: string };
    turn.message('this one', { media: [entry] });
    turn.end();
    await b.next('agent.idle');
    await away.join();
    await away.sync(from);
    const shown = (rows: readonly object[]) =>
      (rows as { text: string; media: { url?: string }[] }[]).map(({ text, media, ...row }) => ({
        ...row,
        text,
        media: media.map(({ url: __, ...file }) => file),
      }));
    const said = shown(a.frames('message').map(({ payload }) => payload));
    expect(said).toMatchObject([
      { text: 'two files', media: [{ size: 70_000 }, { size: 3 }] },
      { text: 'this one', media: [{ size: 70_000 }] },
    ]);
    expect(said[0]!.media).toEqual(echo.payload.media);
    for (const rows of [b.frames('message').map(({ payload }) => payload), away.frames('message').map(({ payload }) => payload)])
      expect(shown(rows)).toEqual(said);
    for (const device of [a, away]) expect(shown(await device.historyAll(lane))).toEqual(said);
    const links = away.frames('message').flatMap(({ payload }) => (payload.media as { url?: string }[]).map(({ url }) => typeof url));
    expect(links).toEqual(['string', 'string', 'string']);
    await world.settle();
  }));

test('STR7 LNK32 TOO3: the agent is lost for longer than the grace: what ran is ended, marked interrupted', () =>
  onStage(async ({ world, agent, a, b }) => {
    await a.send('question');
    const turn = await agent.turn();
    turn.toolStart(0, 'terminal');
    turn.start();
    turn.delta('half an ans');
    await b.next('message.update');
    const start = world.time.now();
    agent.cut();
    await world.advance(29_000);
    expect(b.frames(['message.stop', 'agent.idle'])).toEqual([]);
    const stop = await b.next('message.stop');
    expect(stop.payload).toMatchObject({ final_text: 'half an ans', interrupted: true });
    await b.next('agent.idle');
    expect(world.time.now() - start).toBeLessThanOrEqual(36_000);
    expect(b.frames('tool.end')).toMatchObject([{ payload: { index: 0, ok: false } }]);
    expect((await b.history(lane)).payload.messages?.at(-1)).toMatchObject({ text: 'half an ans', interrupted: true });
  }));

test('STR8: a final that comes after that replaces it, marked late', () =>
  onStage(async ({ world, agent, a, b }) => {
    await a.send('question');
    const turn = await agent.turn();
    const id = turn.start();
    turn.delta('half');
    await world.advance(500);
    agent.cut();
    const stop = await b.next('message.stop', { within_ms: 40_000 });
    await b.next('agent.idle');
    turn.stop({ message_id: id, final_text: 'the whole answer' });
    turn.end();
    await agent.connect();
    const late = await b.next('message');
    expect(late.payload).toMatchObject({ message_id: stop.payload.message_id, text: 'the whole answer', late: true, role: 'assistant' });
    await world.advance(2_000);
    expect(b.frames('agent.idle')).toHaveLength(1);
    const rows = (await b.history(lane)).payload.messages!;
    expect(rows.map(({ text }) => text)).toEqual(['question', 'the whole answer']);
  }));

test('MSG18: commentary is durable and not part of history', () =>
  onStage(async ({ tenant, agent, a, b }) => {
    await a.send('question');
    const turn = await agent.turn();
    turn.commentary('Let me look first.');
    turn.message('done');
    turn.end();
    expect(await b.next('commentary')).toMatchObject({ ...lane, payload: { text: 'Let me look first.' } });
    await b.next('agent.idle');
    expect(tenant.log.map(({ frame }) => frame.type)).toContain('commentary');
    expect((await b.history(lane)).payload.messages?.map(({ text }) => text)).toEqual(['question', 'done']);
  }));

test('MSG6 LNK28: roles of messages outside a turn', () =>
  onStage(async ({ agent, b }) => {
    agent.say('message', { message_id: 'cron-1', role: 'cron', text: 'the daily report' }, lane);
    expect(await b.next('message')).toMatchObject({ ...lane, payload: { role: 'cron', text: 'the daily report' } });
    agent.say('message', { message_id: 'sys-1', role: 'system', text: 'a remark' }, lane);
    expect((await b.next('message')).payload.role).toBe('system');
    expect((await b.history(lane)).payload.messages?.map(({ role }) => role)).toEqual(['cron', 'system']);
  }));
