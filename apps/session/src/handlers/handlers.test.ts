import { frameTable, type UpRow } from '@iris/protocol';
import { describe, expect, test } from '@jest/globals';
import { type Frame, lane, rig, tenant } from '../testing/rig.js';
import { handledTypes } from './index.js';

async function joined(options: Parameters<typeof rig>[0] = {}) {
  const made = await rig(options);
  const phone = made.device('phone');
  await phone.hello();
  return { ...made, phone };
}
const refused = (code: string) => ({ type: 'error', payload: { code } });

test('every type that the session answers has a handler, and no other', () => {
  const wanted = Object.entries(frameTable)
    .filter(([, row]) => (row as { up?: UpRow }).up?.answered_by === 'session')
    .map(([type]) => type);
  expect([...handledTypes].sort()).toEqual(wanted.sort());
});

describe('message.send', () => {
  test('MSG3: what it names must be there, and nothing is stored when it is not', async () => {
    const { phone, log } = await joined();
    expect(await phone.send('x', {}, { chat_id: 'android:chan_9' })).toMatchObject(refused('not_found'));
    expect(await phone.send('x', {}, { chat_id: 'android:default', thread_id: 't_9' })).toMatchObject(refused('not_found'));
    expect(await phone.send('x', { reply_to: 'm_never' })).toMatchObject(refused('not_found'));
    expect(await phone.send('x', { media_refs: ['mu_1'] })).toMatchObject(refused('not_found'));
    expect(await log()).toEqual([]);
  });
  test('MSG16, MSG17: an auto thread is made first, then the echo in it', async () => {
    const { phone, edge } = await joined();
    const echo = await phone.send('Deploy **now**\nplease', { auto_thread: true });
    expect(edge.frames()).toMatchObject([
      {
        type: 'channel.created',
        payload: { kind: 'thread', name: 'Deploy now', auto: true, parent_chat_id: 'android:default', thread_id: 't_1' },
      },
      { type: 'message', chat_id: 'android:default', thread_id: 't_1' },
    ]);
    expect(echo).toMatchObject({ type: 'message', thread_id: 't_1' });
  });
  test('MSG15: not for commands, and not inside a thread', async () => {
    const { phone, edge } = await joined();
    await phone.send('/status', { auto_thread: true });
    await phone.send('Deploy', { auto_thread: true });
    await phone.send('More', { auto_thread: true }, { chat_id: 'android:default', thread_id: 't_1' });
    expect(edge.frames('channel.created')).toHaveLength(1);
    expect(edge.frames('message').map(({ thread_id }) => thread_id)).toEqual([null, 't_1', 't_1']);
  });
  test('MSG14: uploads are attached once, with an id that every device can pull', async () => {
    const { phone, store } = await joined();
    const row: Parameters<typeof store.media.insert>[0] = {
      tenant_id: tenant,
      media_id: 'md_1' as never,
      media_ref: 'mu_1',
      device_id: 'phone' as never,
      state: 'uploaded',
      kind: 'image',
      mime: 'image/png',
      size: 3,
      filename: 'a.png',
      sha256: 'abc',
      details: {},
      created_at: 0,
      object_id: 'ob_1' as never,
      uploaded_sha256: 'abc',
      processed: true,
    };
    await store.media.insert(row, { object_id: 'ob_1' as never, size: 3, sha256: 'abc' });
    expect((await phone.send('', { media_refs: ['mu_1'] })).payload.media).toMatchObject([{ media_id: 'md_1', mime: 'image/png' }]);
    expect(await phone.send('', { media_refs: ['mu_1'] })).toMatchObject(refused('not_found'));
  });
});

describe('history and search', () => {
  test('HIS1, HIS3, HIS4, HIS8: pages back without gaps, also from a message that was deleted', async () => {
    const { phone } = await joined();
    const ids: string[] = [];
    for (let i = 0; i < 7; i++) ids.push((await phone.send(`${i}`)).payload.message_id!);
    await phone.request('message.delete', { message_ids: [ids[3]] }, lane);
    const page = (payload: Record<string, unknown>) => phone.request('history', payload, lane);
    const newest = await page({ limit: 3 });
    expect(newest).toMatchObject({ payload: { has_more: true, oldest_message_id: ids[4] } });
    expect((await page({ limit: 3, before_message_id: ids[4] })).payload).toMatchObject({
      has_more: false,
      messages: [{ text: '0' }, { text: '1' }, { text: '2' }],
    });
    expect((await page({ limit: 2, before_message_id: ids[3] })).payload).toMatchObject({
      has_more: true,
      messages: [{ text: '1' }, { text: '2' }],
    });
    expect(await page({ before_message_id: 'm_never' })).toMatchObject(refused('not_found'));
    expect(await phone.request('history', {}, { chat_id: 'android:chan_5' })).toMatchObject(refused('not_found'));
  });
  test('HIS1: a page is as large as the way carries; what is left out comes with the next', async () => {
    const { phone } = await joined();
    for (let i = 0; i < 20; i++) await phone.send(`${i} ${'x'.repeat(60_000)}`);
    const seen: string[] = [];
    let before: string | undefined;
    for (let pages = 0; pages < 10; pages++) {
      const { payload } = await phone.request('history', { limit: 200, ...(before ? { before_message_id: before } : {}) }, lane);
      const messages = payload.messages as unknown as { message_id: string; text: string }[];
      expect(messages.length).toBeGreaterThan(0);
      seen.unshift(...messages.map(({ text }) => text.split(' ')[0]!));
      if (!payload.has_more) break;
      before = messages[0]!.message_id;
    }
    expect(seen).toEqual(Array.from({ length: 20 }, (_, i) => `${i}`));
  });
  test('SEA2, SEA5: everywhere or in a chat; an empty query has no hits', async () => {
    const { phone } = await joined();
    const other = (await phone.request('channel.create', { name: 'Other' })).payload.chat_id as unknown as string;
    await phone.send('deploy the service');
    await phone.send('deploy the site', {}, { chat_id: other });
    const hits = async (payload: Record<string, unknown>, scope = {}) =>
      ((await phone.request('search', payload, scope)).payload.hits as unknown as { chat_id: string }[]).length;
    expect(await hits({ query: 'deploy' })).toBe(2);
    expect(await hits({ query: 'deploy', scope: 'chat' }, { chat_id: other })).toBe(1);
    expect(await hits({ query: '  ' })).toBe(0);
    expect(await phone.request('search', { query: 'x', scope: 'chat' }, { chat_id: 'android:chan_77' })).toMatchObject(
      refused('not_found'),
    );
  });
});

describe('deleting and reading', () => {
  test('DEL1, DEL2: what never was is listed too; what stands in another lane is left alone', async () => {
    const { phone, log, store } = await joined();
    const other = (await phone.request('channel.create', { name: 'Other' })).payload.chat_id as unknown as string;
    const mine = (await phone.send('mine')).payload.message_id as unknown as string;
    const theirs = (await phone.send('theirs', {}, { chat_id: other })).payload.message_id as unknown as string;
    const answer = await phone.request('message.delete', { message_ids: [mine, theirs, 'm_never', '__proto__', 'a\nb'] }, lane);
    expect(answer).toMatchObject({ type: 'message.deleted', payload: { message_ids: [mine, 'm_never', '__proto__', 'a\nb'] } });
    expect(await store.messages.get(tenant, mine as never)).toBeUndefined();
    expect(await store.messages.get(tenant, theirs as never)).toBeDefined();
    expect(JSON.stringify(await log())).not.toContain('"mine"');
    expect((await log()).map(({ type }) => type)).toEqual(['channel.created', 'message', 'message.deleted']);
  });
  test('RCP3, RCP4, RCP6: forward only, told to the others, once', async () => {
    const { phone, edge } = await joined();
    const [one, two] = [(await phone.send('1')).payload.message_id!, (await phone.send('2')).payload.message_id!];
    const read = (message_id: unknown) => phone.request('read.receipt', { message_id }, lane);
    expect(await read(two)).toMatchObject({ type: 'ack', payload: { ok: true } });
    await read(two);
    await read(one);
    expect(edge.durable().filter(({ type }) => type === 'read.receipt')).toMatchObject([{ except_device_id: 'phone', push: false }]);
    expect(await read('m_never')).toMatchObject(refused('not_found'));
  });
});

describe('channels', () => {
  test('CHA2, CHA4, CHA5, CHA6, CHA7, CHA8: made, named, moved and removed, with threads', async () => {
    const { phone, edge } = await joined();
    const made = await phone.request('channel.create', { name: ' Reports ' });
    expect(made).toMatchObject({ type: 'channel.created', payload: { chat_id: 'android:chan_1', name: 'Reports', kind: 'channel' } });
    const thread = await phone.request('channel.create', { kind: 'thread', parent_chat_id: 'android:chan_1', name: 'Sub' });
    expect(thread).toMatchObject({
      chat_id: 'android:chan_1',
      thread_id: 't_2',
      payload: { kind: 'thread', parent_chat_id: 'android:chan_1' },
    });
    expect(await phone.request('channel.rename', { name: 'Renamed' }, { chat_id: 'android:chan_1', thread_id: 't_2' })).toMatchObject({
      type: 'channel.renamed',
      payload: { thread_id: 't_2', name: 'Renamed' },
    });
    expect(await phone.request('channel.set_default', {}, { chat_id: 'android:chan_1', thread_id: 't_2' })).toMatchObject(
      refused('unsupported'),
    );
    const list = await phone.request('channel.set_default', {}, { chat_id: 'android:chan_1' });
    expect(
      (list.payload.channels as unknown as { chat_id: string; is_default?: boolean }[])
        .filter((one) => one.is_default)
        .map((one) => one.chat_id),
    ).toEqual(['android:chan_1']);
    expect(await phone.request('channel.delete', {}, { chat_id: 'android:chan_1' })).toMatchObject(refused('unsupported'));
    await phone.request('channel.set_default', {}, { chat_id: 'android:default' });
    expect(await phone.request('channel.delete', {}, { chat_id: 'android:chan_1' })).toMatchObject({
      type: 'channel.deleted',
      payload: { chat_id: 'android:chan_1' },
    });
    expect(await phone.request('channel.delete', {}, { chat_id: 'android:chan_1' })).toMatchObject(refused('not_found'));
    expect(edge.frames('channel.deleted')).toHaveLength(1);
    expect(await phone.request('channel.create', { kind: 'thread', parent_chat_id: 'android:chan_9', name: 'x' })).toMatchObject(
      refused('not_found'),
    );
    expect((await phone.request('channel.create', { name: 'Next' })).payload.chat_id).toBe('android:chan_3');
  });
  test('CHA9: what was said in it is gone from the outbox, its turns end, the agent is told', async () => {
    const { phone, log, agent, store } = await joined();
    const link = agent();
    await link.hello();
    const chat_id = (await phone.request('channel.create', { name: 'Doomed' })).payload.chat_id as unknown as string;
    await phone.send('secret', {}, { chat_id });
    const { turn_id } = await link.turn();
    await link.say('turn.accepted', {}, { turn_id: turn_id! });
    await link.say('message.start', { message_id: 'm1', role: 'assistant' }, { turn_id: turn_id! });
    await phone.request('channel.delete', {}, { chat_id });
    expect((await log()).map(({ type }) => type)).toEqual(['agent.idle', 'channel.deleted']);
    expect(link.received().map(({ type }) => type)).toEqual(expect.arrayContaining(['agent.stop', 'channel.deleted']));
    await link.say('message.stop', { message_id: 'm1', final_text: 'secret answer' }, { turn_id: turn_id! });
    await link.say('turn.end', { outcome: 'cancelled' }, { turn_id: turn_id! });
    expect(JSON.stringify(await log())).not.toContain('secret');
    expect(await store.turns.open(tenant)).toEqual([]);
  });
  test('CHA11: an agent names what nobody named; a person’s name stays', async () => {
    const { phone, agent, edge } = await joined();
    const link = agent();
    await link.hello();
    await phone.send('Deploy', { auto_thread: true });
    const at = { chat_id: 'android:default', thread_id: 't_1' };
    await link.say('channel.rename', { name: 'Deployment', only_if_current: 'Deploy' }, { ...at, id: 'title' });
    expect(link.received().filter(({ id }) => id === 'title')).toMatchObject([
      { type: 'channel.renamed', payload: { name: 'Deployment' } },
    ]);
    await phone.request('channel.rename', { name: 'Mine' }, at);
    expect(await link.say('channel.rename', { name: 'Again', only_if_current: 'Mine' }, at)).toMatchObject(refused('unsupported'));
    expect(await link.say('channel.rename', { name: 'Again' }, at)).toMatchObject(refused('unsupported'));
    expect(edge.frames('channel.renamed').map(({ payload }) => payload.name)).toEqual(['Deployment', 'Mine']);
  });
  test('LIM11: no more than the quota', async () => {
    const { phone } = await joined({ config: { channels: 2 } });
    expect((await phone.request('channel.create', { name: 'One' })).type).toBe('channel.created');
    expect(await phone.request('channel.create', { name: 'Two' })).toMatchObject(refused('rate_limited'));
  });
});

describe('pickers and steering', () => {
  async function running(caps = {}) {
    const made = await joined();
    const link = made.agent();
    await link.hello({ caps: { stream: true, steer: true, stop: true, ...caps } });
    await made.phone.send('question');
    const turn_id = (await link.turn()).turn_id!;
    await link.say('turn.accepted', {}, { turn_id });
    return { ...made, link, turn_id };
  }
  const choices = [
    { value: 'yes', label: 'Yes' },
    { value: 'no', label: 'No' },
  ];

  test('PIC2, PIC7, PIC8, PIC10, PIC13: the first answer wins and goes to the agent by its own name', async () => {
    const { phone, device, link, turn_id, edge } = await running();
    const tablet = device('tablet');
    await tablet.hello();
    await link.say('picker.confirm', { picker_id: 'own', choices, extra: { deep: true } }, { turn_id });
    const shown = edge.frames('picker.confirm')[0]!;
    expect(shown.payload).toMatchObject({ title: 'Please confirm', extra: { deep: true }, choices });
    const picker_id = shown.payload.picker_id as unknown as string;
    expect(picker_id).not.toBe('own');
    expect(await phone.request('picker.select', { picker_id, value: 'maybe' })).toMatchObject(refused('unsupported'));
    expect(await phone.request('picker.select', { picker_id, value: 'yes' })).toMatchObject({ type: 'ack' });
    expect(await tablet.request('picker.select', { picker_id, value: 'no' })).toMatchObject(refused('not_found'));
    expect(await tablet.request('picker.select', { picker_id: 'p_never', value: 'no' })).toMatchObject(refused('not_found'));
    expect(link.received().at(-1)).toMatchObject({ type: 'picker.select', turn_id, payload: { picker_id: 'own', value: 'yes' } });
    expect(edge.durable().filter(({ type }) => type === 'picker.closed')).toMatchObject([{ except_device_id: 'phone' }]);
  });
  test('NOT3: approvals and questions come with a notification', async () => {
    const { link, turn_id, edge } = await running();
    await link.say('picker.approval', { picker_id: 'a', title: 'Run it?', command: 'rm -rf build', choices }, { turn_id });
    await link.say('picker.clarify', { picker_id: 'b', question: 'Which one?' }, { turn_id });
    expect(edge.frames('notification').map(({ payload }) => [payload.kind, payload.title, payload.body])).toEqual([
      ['approval', 'Run it?', 'rm -rf build'],
      ['clarify', 'Which one?', 'Which one?'],
    ]);
  });
  test('LNK30: while a question that takes text is open, the next plain message answers it', async () => {
    const { phone, link, turn_id, edge } = await running();
    await link.say('picker.clarify', { picker_id: 'b', question: 'Which one?', allow_text: true }, { turn_id });
    const echo = await phone.send('the second');
    expect(echo.type).toBe('message');
    expect(link.received().at(-1)).toMatchObject({ type: 'picker.select', payload: { picker_id: 'b', value: 'the second' } });
    expect(edge.frames('picker.closed')).toHaveLength(1);
    await phone.send('something else');
    await link.say('turn.end', { outcome: 'completed' }, { turn_id });
    expect((await link.turn()).payload.message).toMatchObject({ text: 'something else' });
  });
  test('PIC11: when its time is over the agent is told and devices see it closed', async () => {
    const { link, turn_id, clock, log, phone, edge } = await running();
    await link.say('picker.choice', { picker_id: 'b', choices, expires_at: clock.now() + 5_000 }, { turn_id });
    const picker_id = edge.frames('picker.choice')[0]!.payload.picker_id;
    await clock.advance(7_000);
    expect((await log()).at(-1)).toMatchObject({ type: 'picker.closed', payload: { picker_id, expired: true } });
    expect(link.received().filter(({ type }) => type === 'picker.closed')[0]?.payload).toEqual({ picker_id: 'b', reason: 'expired' });
    expect(await phone.request('picker.select', { picker_id, value: 'yes' })).toMatchObject(refused('not_found'));
  });
  test('STE1, STE2, STE3: text for the running turn; what it refuses is the next turn', async () => {
    const { phone, link, turn_id, edge } = await running();
    const answer = await phone.request('agent.steer', { text: 'faster' }, lane);
    const message_id = answer.payload.message_id as unknown as string;
    expect(answer).toMatchObject({ type: 'ack', payload: { ok: true } });
    expect(edge.frames('message').at(-1)).toMatchObject({ payload: { message_id, role: 'user', text: 'faster', steer: true } });
    expect(link.received().at(-1)).toMatchObject({ type: 'agent.steer', id: message_id, turn_id, payload: { text: 'faster' } });
    await link.pass('agent.steer', { accepted: true }, { turn_id, id: message_id });
    const second = (await phone.request('agent.steer', { text: 'slower' }, lane)).payload.message_id as unknown as string;
    await link.pass('agent.steer', { accepted: false }, { turn_id, id: second });
    await link.say('turn.end', { outcome: 'completed' }, { turn_id });
    expect((await link.turn()).payload.message).toMatchObject({ text: 'slower', message_id: second });
  });
  test('STE2: an agent that cannot be steered, or a lane where nothing runs, gets it as a turn', async () => {
    const { phone, link, turn_id } = await running({ steer: false });
    await phone.request('agent.steer', { text: 'later' }, lane);
    expect(link.received().some(({ type }) => type === 'agent.steer')).toBe(false);
    await link.say('turn.end', { outcome: 'completed' }, { turn_id });
    expect((await link.turn()).payload.message).toMatchObject({ text: 'later' });
  });
});

describe('hello', () => {
  test('HEL22, HEL23, HEL24: who joins in mid-answer is told what is going on', async () => {
    const { phone, agent, device } = await joined();
    const link = agent();
    await link.hello();
    await phone.send('question');
    const turn_id = (await link.turn()).turn_id!;
    await link.say('turn.accepted', {}, { turn_id });
    await link.say('message.start', { message_id: 'm1', role: 'assistant' }, { turn_id });
    await link.update('message.update', { message_id: 'm1', text: 'so far' }, turn_id);
    await link.say('picker.choice', { picker_id: 'b', choices: [{ value: 'a', label: 'A' }] }, { turn_id });
    const answer = await device('tablet').hello();
    const frames = answer.frames.map((frame) => JSON.parse(frame) as Frame);
    expect(new Set(frames.map(({ type }) => type))).toEqual(new Set(['agent.busy', 'picker.choice', 'message.start', 'message.update']));
    expect(frames.find(({ type }) => type === 'message.update')?.payload.text).toBe('so far');
    expect(answer).toMatchObject({ head: 4, watermark: 4 });
    await link.say('turn.end', { outcome: 'completed' }, { turn_id });
    expect((await device('desk').hello()).frames).toEqual([]);
  });
  test('HEL12: the connection that it replaces is closed with 4409', async () => {
    const { phone, device, edge } = await joined();
    await device('phone').hello();
    expect(edge.closes()).toMatchObject([{ connection_id: phone.connection_id, code: 4409 }]);
  });
  test('LIM10: connections over the quota are refused, one’s own again is not', async () => {
    const { device } = await joined({ config: { connections: 2 } });
    expect((await device('d2').hello()).refused).toBeUndefined();
    expect((await device('d3').hello()).refused).toMatchObject({ code: 'rate_limited', close: 1013 });
    expect((await device('phone').hello()).refused).toBeUndefined();
  });
  test('ENV21: a hello that comes again is answered from memory and registers nothing twice', async () => {
    const { phone, clock, edge } = await joined();
    phone.again(1);
    await clock.settle();
    expect(phone.answersTo(1)).toHaveLength(2);
    expect(edge.closes()).toEqual([]);
  });
});

describe('what agents ask', () => {
  test('LNK38, CMD1, CMD2, CMD3: the catalog is kept, and served while the agent is away', async () => {
    const { phone, agent } = await joined();
    const link = agent();
    await link.hello();
    await link.say('commands.catalog', {
      commands: [{ name: '/model', description: 'Switch', args_hint: '<name>', category: 'Configuration', aliases: ['/m'] }],
    });
    await link.gone();
    expect((await phone.request('commands.catalog')).payload.commands).toEqual([
      { name: '/model', description: 'Switch', args_hint: '<name>', category: 'Configuration', aliases: ['/m'] },
    ]);
    expect((await phone.request('commands.complete', { prefix: '/mo' })).payload).toMatchObject({
      prefix: '/mo',
      matches: [{ name: '/model' }],
    });
  });
  test('LNK39: history and search are answered to the agent alone', async () => {
    const { phone, agent, edge } = await joined();
    const link = agent();
    await link.hello();
    await phone.send('question');
    const before = edge.durable().length;
    expect(await link.pass('history', { limit: 10 }, { ...lane, id: 'h1' })).toMatchObject({
      type: 'history',
      payload: { messages: [{ text: 'question' }] },
    });
    expect(await link.pass('search', { query: 'question' }, { id: 's1' })).toMatchObject({ type: 'search.results' });
    expect(edge.durable()).toHaveLength(before);
  });
  test('LNK28: what is said outside a turn needs none', async () => {
    const { agent, edge } = await joined();
    const link = agent();
    await link.hello();
    await link.say('message', { message_id: 'c1', role: 'cron', text: 'Good morning' }, lane);
    await link.say('notification', { kind: 'cron', title: 'Cron', body: 'Done', ts: 1 }, lane);
    expect(edge.durable().map(({ type, push }) => [type, push])).toEqual([
      ['message', true],
      ['notification', true],
    ]);
    expect(await link.say('message', { message_id: 'c2', text: 'x' }, { chat_id: 'android:chan_8' })).toMatchObject(refused('not_found'));
    expect(await link.say('media.offer', { media_id: 'md_9', kind: 'file', mime: 'a/b', size: 1 }, lane)).toMatchObject(
      refused('not_found'),
    );
  });
  test('TYP1, TYP2: typing is live only, and ends by itself', async () => {
    const { agent, edge, clock, log, phone } = await joined();
    const link = agent();
    await link.hello();
    await phone.send('question');
    const turn_id = (await link.turn()).turn_id!;
    await link.say('turn.accepted', {}, { turn_id });
    await link.update('typing', { on: true }, turn_id);
    await clock.advance(9_000);
    expect(
      edge
        .ephemerals()
        .filter(({ type }) => type.startsWith('typing'))
        .map(({ type }) => type),
    ).toEqual(['typing']);
    expect((await log()).map(({ type }) => type)).toEqual(['message', 'agent.busy']);
    await link.update('typing', { on: true }, turn_id);
    await link.say('turn.end', { outcome: 'completed' }, { turn_id });
    await clock.advance(20_000);
    expect(edge.ephemerals().filter(({ type }) => type === 'typing.stop').length).toBeLessThanOrEqual(1);
  });

  test('TYP2: it ends by itself when its agent comes back meanwhile, and a second one does not begin with the end of the first', async () => {
    const { agent, edge, clock, phone } = await joined();
    const link = agent();
    await link.hello();
    await phone.send('question');
    const turn_id = (await link.turn()).turn_id!;
    await link.say('turn.accepted', {}, { turn_id });
    const typings = () => edge.ephemerals().flatMap(({ type }) => (type.startsWith('typing') ? [type] : []));
    await link.update('typing', { on: true }, turn_id);
    await clock.advance(4_000);
    const back = agent({ seq: link.seq });
    await back.hello({ last_seq: 1, open_turns: [turn_id] });
    await clock.advance(4_000);
    await back.update('typing', { on: true }, turn_id);
    await clock.advance(4_000);
    expect(typings()).toEqual(['typing', 'typing']);
    const again = agent({ seq: back.seq });
    await again.hello({ last_seq: 1, open_turns: [turn_id] });
    await clock.advance(7_000);
    expect(typings()).toEqual(['typing', 'typing', 'typing.stop']);
  });
});
