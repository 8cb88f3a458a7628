import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Clock, silentLog, systemClock } from '@iris/runtime';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { StartAgentOptions } from '../../start-agent.js';
import { type Attached, attach } from '../../testing/attached.js';
import { type ModelServer, modelServer } from '../../testing/model-server.js';
import { laneSettings } from './lane-settings.js';

let server: ModelServer;
let open: Attached[] = [];
beforeEach(async () => {
  server = await modelServer();
});
afterEach(async () => {
  for (const one of open) await one.close();
  open = [];
  await server.close();
});
const start = async (options: Partial<StartAgentOptions> = {}) => {
  const one = await attach({ url: server.url, key: 'sk-very-secret-key', ...options });
  open.push(one);
  return one;
};
const messages = (body: Record<string, unknown>) => body.messages as { role: string; content: unknown }[];

test('an answer streams: reasoning, text, usage and cost in the footer, the model without its vendor', async () => {
  const it = await start();
  const turn = it.begin('What is 6 × 7?');
  const asked = await server.next();
  expect(asked).toMatchObject({
    method: 'POST',
    path: '/v1/chat/completions',
    headers: { authorization: 'Bearer sk-very-secret-key' },
    body: {
      model: 'acme/tiny-1',
      stream: true,
      stream_options: { include_usage: true },
      messages: [{ role: 'user', content: 'What is 6 × 7?' }],
    },
  });
  expect(asked.body).not.toHaveProperty('reasoning_effort');
  await asked.event({ choices: [{ delta: { role: 'assistant', content: '' } }] });
  await asked.event({ choices: [{ delta: { reasoning_content: 'six times ' } }] });
  await asked.event({ choices: [{ delta: { reasoning: 'seven' } }] });
  await asked.text('It is ');
  await it.running('It is ');
  await asked.text('42.');
  await asked.done({ prompt_tokens: 230, completion_tokens: 20, total_tokens: 250, cost: 0.0021 });
  const { outcome, frames } = await it.ended(turn);
  expect(outcome).toBe('completed');
  expect(frames.find(({ type }) => type === 'message.stop')?.payload).toMatchObject({
    final_text: 'It is 42.',
    reasoning: 'six times seven',
    model: 'tiny-1',
    tokens: 20,
    runtime: { model: 'tiny-1', context_pct: 25, cost: 0.0021, latency: expect.any(Number) },
  });
  expect(frames.at(-1)?.payload).toMatchObject({ outcome: 'completed', usage: { total_tokens: 250 } });
});

test('the past comes from the gateway: back to /new, without commands, system notes and what waits behind', async () => {
  const it = await start({ model: { system_prompt: 'Be brief.' } });
  const row = (role: string, text: string) => it.past.push({ message_id: `h${it.past.length}`, role, text, ts: it.past.length });
  row('user', 'forgotten');
  row('assistant', 'forgotten too');
  row('user', '/new');
  row('system', 'A new beginning.');
  row('user', 'one');
  row('assistant', 'uno');
  row('user', '/model plain');
  row('user', 'two');
  const turn = it.begin('three');
  row('assistant', 'due');
  row('user', 'four waits');
  const asked = await server.next();
  expect(messages(asked.body)).toEqual([
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: 'one' },
    { role: 'assistant', content: 'uno' },
    { role: 'user', content: 'two' },
    { role: 'assistant', content: 'due' },
    { role: 'user', content: 'three' },
  ]);
  await asked.text('tre');
  await asked.done();
  expect(await it.ended(turn)).toMatchObject({ outcome: 'completed', texts: ['tre'] });
});

test('the past is bounded by characters, newest first', async () => {
  const it = await start({ model: { history_chars: 25 } });
  for (let i = 0; i < 10; i++) it.past.push({ message_id: `h${i}`, role: i % 2 ? 'assistant' : 'user', text: `${i}`.repeat(10), ts: i });
  it.begin('now');
  const asked = await server.next();
  expect(messages(asked.body).map(({ content }) => content)).toEqual(['8888888888', '9999999999', 'now']);
  await asked.text('ok');
  await asked.done();
});

describe('what goes wrong', () => {
  test('a slow first token is waited for; stop in the middle ends the request at once and keeps the text', async () => {
    const it = await start();
    const turn = it.begin('count');
    const asked = await server.next();
    await asked.raw(': still thinking\n\n');
    await asked.text('one two');
    await it.running('one two');
    it.gateway.stop(turn);
    await asked.gone;
    expect(await it.ended(turn)).toMatchObject({ outcome: 'cancelled', texts: ['one two'] });
    expect(server.seen.filter(({ method }) => method === 'POST')).toHaveLength(1);
  });

  test('a stop before the first token, and while waiting to ask again', async () => {
    const it = await start();
    const first = it.begin('one');
    const asked = await server.next();
    it.gateway.stop(first);
    await asked.gone;
    expect(await it.ended(first)).toMatchObject({ outcome: 'cancelled', texts: [] });
    const second = it.begin('two');
    (await server.next()).answer(503, { error: { message: 'loading' } }, { 'retry-after': '50' });
    it.gateway.stop(second);
    expect(await it.ended(second)).toMatchObject({ outcome: 'cancelled', texts: [] });
  });

  test('a connection that breaks in the middle: what was written stays, the turn has failed, and nothing is asked again', async () => {
    const it = await start();
    const turn = it.begin('tell me');
    const asked = await server.next();
    await asked.text('Once upon');
    await it.running('Once upon');
    asked.drop();
    expect(await it.ended(turn)).toMatchObject({
      outcome: 'failed',
      texts: ['Once upon'],
      error: `${server.host} broke the connection (ECONNRESET)`,
    });
    expect(server.seen.filter(({ method }) => method === 'POST')).toHaveLength(1);
  });

  test('a stream that just ends is no answer', async () => {
    const it = await start();
    const turn = it.begin('tell me');
    const asked = await server.next();
    await asked.text('Once upon');
    asked.end();
    expect(await it.ended(turn)).toMatchObject({ outcome: 'failed', texts: ['Once upon'], error: expect.stringContaining('broke off') });
  });

  test('an error object in the middle of the stream', async () => {
    const it = await start();
    const turn = it.begin('tell me');
    const asked = await server.next();
    await asked.text('Once');
    await it.running('Once');
    await asked.event({ error: { message: 'out of memory; key sk-very-secret-key', code: 500 } });
    const end = await it.ended(turn);
    expect(end).toMatchObject({ outcome: 'failed', texts: ['Once'], error: `${server.host}: out of memory; key [hidden]` });
    expect(it.logged.join('\n')).not.toContain('very-secret');
  });

  test('before the first token it is asked again: dropped, busy with Retry-After, failing', async () => {
    const it = await start();
    const turn = it.begin('hello?');
    (await server.next()).drop();
    (await server.next()).answer(429, { error: { message: 'slow down' } }, { 'retry-after': '0' });
    const third = await server.next();
    await third.event({ choices: [{ delta: { role: 'assistant' } }] });
    third.drop();
    const fourth = await server.next();
    await fourth.text('Hello!');
    await fourth.done();
    expect(await it.ended(turn)).toMatchObject({ outcome: 'completed', texts: ['Hello!'] });
  });

  test('bounded: after the last try it says why, without the key', async () => {
    const it = await start({ model: { model_retries: 1 } });
    const turn = it.begin('hello?');
    for (let i = 0; i < 2; i++) (await server.next()).answer(500, { error: 'boom sk-very-secret-key' });
    expect(await it.ended(turn)).toMatchObject({ outcome: 'failed', error: `${server.host} has failed (500): boom [hidden]` });
  });

  test.each([
    [401, { error: { message: 'Incorrect API key provided: sk-ver*****-key' } }, 'refuses the key (401)'],
    [404, { error: { message: 'model "x" not found' } }, 'knows no such model or address (404): model "x" not found'],
    [429, { error: { message: 'no money', code: 'insufficient_quota' } }, 'takes no more requests for now (429): no money'],
    [400, '<html><body>proxy</body></html>', 'refuses the request (400)'],
  ])('%i is not asked again', async (status, body, why) => {
    const it = await start();
    const turn = it.begin('hello?');
    (await server.next()).answer(status, body);
    const { outcome, error } = await it.ended(turn);
    expect(outcome).toBe('failed');
    expect(error).toContain(why);
    expect(error).not.toContain('sk-');
    expect(server.seen.filter(({ method }) => method === 'POST')).toHaveLength(1);
  });

  test('a Retry-After of an hour is told, not waited for', async () => {
    const it = await start();
    const turn = it.begin('hello?');
    (await server.next()).answer(429, {}, { 'retry-after': '3600' });
    expect(await it.ended(turn)).toMatchObject({ outcome: 'failed' });
  });

  test('nobody listens there', async () => {
    const other = await modelServer();
    await other.close();
    const it = await start({ url: other.url, model: { model_retries: 0, agent_model: 'x' } });
    expect(await it.ended(it.begin('hello?'))).toMatchObject({ outcome: 'failed', error: `${other.host} does not answer (ECONNREFUSED)` });
  });

  test('silence in the middle', async () => {
    const silence_ms = 7_777;
    let pass = () => {};
    const clock: Clock = {
      ...systemClock,
      after(ms, run) {
        if (ms === silence_ms) pass = run;
        return ms === silence_ms ? { cancel() {} } : systemClock.after(ms, run);
      },
    };
    const it = await start({ clock, model: { silence_ms } });
    const turn = it.begin('tell me');
    const asked = await server.next();
    await asked.text('Once');
    await it.running('Once');
    pass();
    await asked.gone;
    expect(await it.ended(turn)).toMatchObject({
      outcome: 'failed',
      texts: ['Once'],
      error: expect.stringContaining('has said nothing for'),
    });
  });

  test('an empty answer, and one that wants tools', async () => {
    const it = await start();
    const first = it.begin('one');
    await (await server.next()).done();
    expect(await it.ended(first)).toMatchObject({ outcome: 'failed', error: 'tiny-1 answered with nothing' });
    const second = it.begin('two');
    const asked = await server.next();
    await asked.event({ choices: [{ delta: { tool_calls: [{ index: 0, function: { name: 'x' } }] } }] });
    await asked.done();
    expect(await it.ended(second)).toMatchObject({ outcome: 'failed', error: expect.stringContaining('wanted to use a tool') });
  });
});

test('servers that do otherwise: no stream, no stream_options, reasoning within the text', async () => {
  const it = await start();
  const first = it.begin('one');
  const refused = await server.next();
  refused.answer(400, { error: { message: 'Unrecognized argument: stream_options' } });
  const again = await server.next();
  expect(again.body).not.toHaveProperty('stream_options');
  again.answer(200, {
    model: 'plain',
    choices: [{ message: { content: 'whole', reasoning_content: 'why' }, finish_reason: 'stop' }],
    usage: { completion_tokens: 1 },
  });
  const whole = await it.ended(first);
  expect(whole.frames.find(({ type }) => type === 'message.stop')?.payload).toMatchObject({
    final_text: 'whole',
    reasoning: 'why',
    model: 'plain',
    tokens: 1,
  });

  const second = it.begin('two');
  const thinking = await server.next();
  for (const text of ['\n<th', 'ink>hm ', '</b> ', '</thi', 'nk>\n\n', 'Yes', ' <think>']) await thinking.text(text);
  await thinking.done();
  const { frames } = await it.ended(second);
  expect(frames.find(({ type }) => type === 'message.stop')?.payload).toMatchObject({ final_text: 'Yes <think>', reasoning: 'hm </b> ' });
});

test('what is written meanwhile is not taken: it becomes the next turn', async () => {
  const it = await start();
  const turn = it.begin('one');
  const asked = await server.next();
  const steer = it.gateway.steer(turn, 'and two');
  await asked.text('1');
  await asked.done();
  await it.ended(turn);
  expect(it.gateway.steered(steer)).toBe(false);
  expect(it.gateway.hellos[0]).toMatchObject({ agent: 'openai', caps: { steer: false, delete: true, tools: false } });
});

describe('commands', () => {
  const command = (it: Attached, text: string) => it.begin(text, { kind: 'command' });

  test('/model opens a picker from the endpoint, and the choice outlasts the process', async () => {
    const spool = mkdtempSync(join(tmpdir(), 'iris-openai-'));
    const it = await start({ spool });
    const turn = command(it, '/model');
    const { payload } = await it.frame('picker.model');
    expect(payload).toMatchObject({
      current_provider: 'acme',
      current_model: 'tiny-1',
      providers: [
        { id: 'acme', models: [{ id: 'tiny-1' }] },
        { id: server.host, models: [{ id: 'plain' }] },
      ],
    });
    it.gateway.tell({ type: 'picker.select', payload: { picker_id: payload.picker_id, value: `${server.host}/plain` } });
    expect(await it.ended(turn)).toMatchObject({ outcome: 'completed', notes: ['From now on `plain` answers here.'] });
    it.begin('hi');
    const asked = await server.next();
    expect(asked.body.model).toBe('plain');
    await asked.text('hi');
    await asked.done();
    await it.close();
    open = [];
    const next = laneSettings({ dir: spool, log: silentLog });
    expect(next.of({ chat_id: 'android:default', thread_id: null })).toEqual({ model: 'plain' });
    expect(next.of({ chat_id: 'android:default', thread_id: 't' })).toEqual({});
    rmSync(spool, { recursive: true });
  });

  test('/model <name> and /reasoning <effort>; and what there is not', async () => {
    const it = await start();
    expect((await it.ended(command(it, '/model TINY'))).notes).toEqual(['From now on `tiny-1` answers here.']);
    expect((await it.ended(command(it, '/model gpt'))).notes).toEqual([`${server.host} has no model like \`gpt\`.`]);
    expect((await it.ended(command(it, '/reasoning loud'))).notes).toEqual(['One of default, minimal, low, medium, high, please.']);
    const asking = command(it, '/reasoning');
    const { payload } = await it.frame('picker.choice');
    expect(payload.choices).toContainEqual({ value: 'default', label: 'Default', is_current: true });
    it.gateway.tell({ type: 'picker.select', payload: { picker_id: payload.picker_id, value: 'high' } });
    await it.ended(asking);
    it.begin('hi');
    const asked = await server.next();
    expect(asked.body).toMatchObject({ model: 'acme/tiny-1', reasoning_effort: 'high' });
    await asked.text('hi');
    await asked.done();
  });

  test('/retry answers the last message again, /undo takes it back', async () => {
    const it = await start();
    it.past.push({ message_id: 'q', role: 'user', text: 'question', ts: 0 }, { message_id: 'a', role: 'assistant', text: 'bad', ts: 1 });
    const retry = command(it, '/retry');
    const asked = await server.next();
    expect(messages(asked.body)).toEqual([{ role: 'user', content: 'question' }]);
    expect((await it.frame('message.delete')).payload.message_ids).toEqual(['a']);
    const beside = await it.ended(command(it, '/undo'));
    expect(beside.notes).toEqual(['An answer is being written. `/stop` it first.']);
    await asked.text('better');
    await asked.done();
    expect(await it.ended(retry)).toMatchObject({ texts: ['better'] });
    await it.ended(command(it, '/undo'));
    expect((await it.frame('message.delete')).payload.message_ids).toEqual(['q', 'a']);
  });

  test('/help, /new, /status, /title, /stop: by the runner itself, as words of the system', async () => {
    const it = await start();
    const help = await it.ended(command(it, '/help'));
    for (const name of ['/new', '/stop', '/model', '/reasoning', '/retry', '/undo', '/title', '/status', '/help'])
      expect(help.notes[0]).toContain(`\`${name}`);
    expect((await it.ended(command(it, '/status'))).notes[0]).toContain(server.host);
    await it.ended(command(it, '/title A name'));
    expect((await it.frame('channel.rename')).payload.name).toBe('A name');
    expect((await it.ended(command(it, '/new'))).notes).toHaveLength(1);
    expect((await it.ended(command(it, '/stop'))).notes).toEqual(['Nothing is running here.']);
    expect(server.seen.filter(({ method }) => method === 'POST')).toEqual([]);
  });
});

test('files: images go along as data, texts as text, and of the rest the person is told', async () => {
  const files = await modelServer();
  files.routes.set('/notes.json', { a: 1 });
  const it = await start({ gateway: `ws://${files.host}/agent` });
  const media = [
    { media_id: 'm1', kind: 'image', mime: 'image/png', size: 3, url: `http://${files.host}/cat.png` },
    { media_id: 'm2', kind: 'file', mime: 'application/json', size: 7, filename: 'notes.json', url: '/notes.json' },
    { media_id: 'm3', kind: 'audio', mime: 'audio/ogg', size: 3, url: 'http://nowhere.test/x' },
    { media_id: 'm4', kind: 'image', mime: 'image/png', size: 3, filename: 'off.png' },
  ];
  const turn = it.begin('Look', { media });
  const cat = await files.next();
  expect(cat.headers).not.toHaveProperty('authorization');
  cat.answer(200, 'PNG');
  const asked = await server.next();
  expect(messages(asked.body).at(-1)).toEqual({
    role: 'user',
    content: [
      { type: 'text', text: 'Look' },
      { type: 'image_url', image_url: { url: `data:image/png;base64,${Buffer.from('PNG').toString('base64')}` } },
      { type: 'text', text: '[notes.json]\n{"a":1}' },
      { type: 'text', text: '[The person sent an audio, which you cannot see.]' },
      { type: 'text', text: '[The person sent off.png, which you cannot see.]' },
    ],
  });
  await asked.text('seen');
  await asked.done();
  const { notes } = await it.ended(turn);
  expect(notes).toEqual([
    "I can't see an audio: audio/ogg is nothing that I can read.",
    "I can't see off.png: the gateway gives me no files.",
  ]);
  await files.close();
});

test('where others choose the address, private ones are not asked', async () => {
  const it = await start({ model: { private_addresses: false, agent_model: 'x' } });
  expect(await it.ended(it.begin('hello?'))).toMatchObject({
    outcome: 'failed',
    error: `this agent may not ask ${server.host}: 127.0.0.1 is a private address`,
  });
  expect(server.seen).toEqual([]);
});
