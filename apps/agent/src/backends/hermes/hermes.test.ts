import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { StartAgentOptions } from '../../start-agent.js';
import { type Attached, attach } from '../../testing/attached.js';
import { type Exchange, type ModelServer, modelServer } from '../../testing/model-server.js';

const features = { run_submission: true, run_events_sse: true, run_status: true, run_stop: true, session_resources: true };
const newer = { ...features, run_steer: true, runs_idempotency: { supported: true }, model_options: true };
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
const start = async (can: object | null = newer, options: Partial<StartAgentOptions> = {}) => {
  if (can) server.routes.set('/v1/capabilities', { object: 'hermes.api_server.capabilities', model: 'hermes-agent', features: can });
  const one = await attach({ backend: 'hermes', url: server.host.replace(/^/, 'http://'), key: 'key-of-hermes', ...options });
  open.push(one);
  return one;
};
/** Answers `POST /v1/runs`, and gives the stream of its events. */
async function begun(run_id = 'run_1'): Promise<{ post: Exchange; events: Exchange }> {
  const post = await server.next('/v1/runs');
  post.answer(202, { run_id, status: 'started', replayed: false });
  return { post, events: await server.next(`/v1/runs/${run_id}/events`) };
}
const say = (stream: Exchange, event: string, more: object = {}) => stream.event({ event, run_id: 'run_1', timestamp: 1, ...more });

test('a run: text, reasoning, tools, the end; the turn is its key, the lane its session', async () => {
  const it = await start();
  const turn = it.begin('What is here?');
  const { post, events } = await begun();
  expect(post.headers).toMatchObject({
    authorization: 'Bearer key-of-hermes',
    'idempotency-key': turn,
    'x-hermes-session-key': expect.stringMatching(/^iris-\w+$/),
  });
  expect(post.body).toEqual({ input: 'What is here?', session_id: expect.stringMatching(/^iris-\w+-1$/) });
  await events.raw(': keepalive\n\n');
  await say(events, 'message.delta', { delta: 'Let me ' });
  await say(events, 'message.delta', { delta: 'look.' });
  await it.running('Let me look.');
  await say(events, 'tool.started', { tool: 'terminal', preview: 'ls' });
  await say(events, 'tool.started', { tool: 'terminal', preview: 'pwd' });
  await say(events, 'tool.completed', { tool: 'terminal', duration: 0.5, error: false });
  await say(events, 'tool.completed', { tool: 'terminal', duration: 0.7, error: true });
  await say(events, 'reasoning.available', { text: 'two files' });
  await say(events, 'message.delta', { delta: 'Two fil' });
  await say(events, 'run.completed', { output: 'Two files.', usage: { input_tokens: 100, output_tokens: 9, total_tokens: 109 } });
  const { outcome, frames, texts } = await it.ended(turn);
  expect([outcome, texts]).toEqual(['completed', ['Let me look.', 'Two files.']]);
  expect(frames.filter(({ type }) => type === 'tool.end').map(({ payload }) => payload)).toMatchObject([
    { name: 'terminal', ok: true, duration: 0.5 },
    { name: 'terminal', ok: false, duration: 0.7 },
  ]);
  expect(frames.findLast(({ type }) => type === 'message.stop')?.payload).toMatchObject({
    reasoning: 'two files',
    tokens: 9,
    model: 'hermes-agent',
  });
});

test('what Hermes 0.19 calls reasoning is the answer again, and is not shown as reasoning', async () => {
  const it = await start();
  const turn = it.begin('What is here?');
  const { events } = await begun();
  await say(events, 'message.delta', { delta: 'Two files. ' });
  await say(events, 'message.delta', { delta: 'Shall I count them?' });
  await say(events, 'reasoning.available', { text: 'Two files. Shall I' });
  await say(events, 'tool.started', { tool: 'terminal', preview: 'ls' });
  await say(events, 'reasoning.available', { text: 'Two files. Shall I count them?' });
  await say(events, 'tool.completed', { tool: 'terminal', duration: 0.5, error: false });
  await say(events, 'message.delta', { delta: 'Two.' });
  await say(events, 'reasoning.available', { text: 'Two.' });
  await say(events, 'run.completed', { output: 'Two.' });
  const { frames, texts } = await it.ended(turn);
  expect(texts).toEqual(['Two files. Shall I count them?', 'Two.']);
  expect(frames.filter(({ payload }) => 'reasoning' in payload)).toEqual([]);
});

test('an approval is asked with its choices and answered with its request_id', async () => {
  const it = await start();
  const turn = it.begin('clean up');
  const { events } = await begun();
  await say(events, 'approval.request', {
    command: 'rm -rf build',
    description: 'removes files',
    choices: ['once', 'session', 'deny'],
    request_id: 'rq1',
  });
  const { payload } = await it.frame('picker.approval');
  expect(payload).toMatchObject({ command: 'rm -rf build', body: 'removes files' });
  expect(payload.choices.map(({ value }) => value)).toEqual(['once', 'session', 'deny']);
  it.gateway.tell({ type: 'picker.select', payload: { picker_id: payload.picker_id, value: 'session' } });
  const approval = await server.next('/v1/runs/run_1/approval');
  expect(approval.body).toEqual({ choice: 'session', request_id: 'rq1' });
  approval.answer(200, { resolved: 1 });
  await say(events, 'approval.responded', { choice: 'session', request_id: 'rq1', resolved: 1 });
  // Answered elsewhere: the question goes away.
  await say(events, 'approval.request', { command: 'ls', choices: ['once', 'deny'], request_id: 'rq2' });
  const second = await it.frame('picker.approval');
  await say(events, 'approval.responded', { choice: 'once', request_id: 'rq2', resolved: 1 });
  expect((await it.frame('picker.closed')).payload.picker_id).toBe(second.payload.picker_id);
  await say(events, 'run.completed', { output: 'Done.' });
  expect(await it.ended(turn)).toMatchObject({ outcome: 'completed', texts: ['Done.'] });
});

test('an answer that comes too late is said to be', async () => {
  const it = await start();
  const turn = it.begin('clean up');
  const { events } = await begun();
  await say(events, 'approval.request', { command: 'ls', choices: ['once', 'deny'], request_id: 'rq1' });
  const { payload } = await it.frame('picker.approval');
  it.gateway.tell({ type: 'picker.select', payload: { picker_id: payload.picker_id, value: 'once' } });
  (await server.next('/v1/runs/run_1/approval')).answer(409, { error: { code: 'approval_not_pending', message: 'no' } });
  expect((await it.frame('message')).payload).toMatchObject({ role: 'system', text: 'The agent no longer waited for this answer.' });
  await say(events, 'run.completed', { output: 'Done.' });
  await it.ended(turn);
});

describe('stop', () => {
  test('in the middle: the text stays, Hermes is told', async () => {
    const it = await start();
    const turn = it.begin('count');
    const { events } = await begun();
    await say(events, 'message.delta', { delta: 'one two' });
    await it.running('one two');
    it.gateway.stop(turn);
    (await server.next('/v1/runs/run_1/stop')).answer(200, { status: 'stopping' });
    expect(await it.ended(turn)).toMatchObject({ outcome: 'cancelled', texts: ['one two'] });
  });

  test('before Hermes has answered: the run that it began is stopped all the same', async () => {
    const it = await start();
    const turn = it.begin('count');
    const post = await server.next('/v1/runs');
    it.gateway.stop(turn);
    post.answer(202, { run_id: 'run_9' });
    (await server.next('/v1/runs/run_9/stop')).answer(200, {});
    expect(await it.ended(turn)).toMatchObject({ outcome: 'cancelled' });
  });
});

test('what is written meanwhile is steered; what the run did not hear becomes its next one, in the same turn', async () => {
  const it = await start();
  const turn = it.begin('plan');
  const { events } = await begun();
  await say(events, 'message.delta', { delta: 'A plan' });
  await it.running('A plan');
  const heard = it.gateway.steer(turn, 'shorter');
  const steer = await server.next('/v1/runs/run_1/steer');
  expect(steer.body).toEqual({ input: 'shorter' });
  steer.answer(200, { accepted: true });
  it.gateway.steer(turn, 'and in French');
  (await server.next('/v1/runs/run_1/steer')).answer(409, { error: { code: 'run_not_accepting_steer' } });
  await say(events, 'run.completed', { output: 'A plan' });
  const next = await begun('run_2');
  expect(next.post).toMatchObject({ body: { input: 'and in French' }, headers: { 'idempotency-key': `${turn}.2` } });
  await say(next.events, 'run.completed', { output: 'Un plan' });
  expect(await it.ended(turn)).toMatchObject({ outcome: 'completed', texts: ['A plan', 'Un plan'] });
  expect(it.gateway.steered(heard)).toBe(true);
});

describe('what breaks', () => {
  test('a lost stream goes on behind the last event', async () => {
    const it = await start();
    const turn = it.begin('tell me');
    const { events } = await begun();
    await events.raw(`id: 4\ndata: ${JSON.stringify({ event: 'message.delta', delta: 'Once ' })}\n\n`);
    await it.running('Once ');
    events.drop();
    const again = await server.next('/v1/runs/run_1/events');
    expect(again.headers['last-event-id']).toBe('4');
    await say(again, 'message.delta', { delta: 'more' });
    await say(again, 'run.completed', { output: 'Once more' });
    expect(await it.ended(turn)).toMatchObject({ outcome: 'completed', texts: ['Once more'] });
  });

  test('where it cannot, the run is asked how it stands', async () => {
    const it = await start();
    const turn = it.begin('tell me');
    const { events } = await begun();
    await say(events, 'message.delta', { delta: 'Once ' });
    await it.running('Once ');
    events.drop();
    (await server.next('/v1/runs/run_1')).answer(200, { status: 'completed', output: 'Once upon a time', usage: { output_tokens: 4 } });
    expect(await it.ended(turn)).toMatchObject({ outcome: 'completed', texts: ['Once upon a time'] });
  });

  test('Hermes was restarted: the text stays, and nothing runs again', async () => {
    const it = await start();
    const turn = it.begin('tell me');
    const { events } = await begun();
    await say(events, 'message.delta', { delta: 'Once ' });
    await it.running('Once ');
    events.drop();
    (await server.next('/v1/runs/run_1')).answer(200, { status: 'interrupted', error: 'restarted' });
    expect(await it.ended(turn)).toMatchObject({
      outcome: 'failed',
      texts: ['Once '],
      error: 'the agent was restarted in the middle of the run',
    });
    expect(server.seen.filter(({ path }) => path === '/v1/runs')).toHaveLength(1);
  });

  test('a run that fails says why, without the key', async () => {
    const it = await start();
    const turn = it.begin('tell me');
    const { events } = await begun();
    await say(events, 'message.delta', { delta: 'Well' });
    await say(events, 'run.failed', { error: 'provider refused key-of-hermes' });
    expect(await it.ended(turn)).toMatchObject({ outcome: 'failed', texts: ['Well'], error: 'provider refused [hidden]' });
  });

  test('too many runs: waited for; a lost answer is asked for with the same key', async () => {
    const it = await start();
    const turn = it.begin('tell me');
    (await server.next('/v1/runs')).answer(429, { error: { message: 'busy' } }, { 'retry-after': '0' });
    (await server.next('/v1/runs')).drop();
    const { post, events } = await begun();
    expect(post.headers['idempotency-key']).toBe(turn);
    await say(events, 'run.completed', { output: 'Here.' });
    expect(await it.ended(turn)).toMatchObject({ outcome: 'completed', texts: ['Here.'] });
  });

  test('an older one, which would run it twice, is not asked again after a lost answer', async () => {
    const it = await start(features);
    const turn = it.begin('tell me');
    (await server.next('/v1/runs')).drop();
    expect(await it.ended(turn)).toMatchObject({ outcome: 'failed' });
    expect(server.seen.filter(({ path }) => path === '/v1/runs')).toHaveLength(1);
  });
});

describe('memory', () => {
  test('an older Hermes is told the past; it takes no steering', async () => {
    const it = await start(features);
    it.past.push({ message_id: 'h1', role: 'user', text: 'one', ts: 0 }, { message_id: 'h2', role: 'assistant', text: 'uno', ts: 1 });
    const turn = it.begin('two');
    const { post, events } = await begun();
    expect(post.body).toMatchObject({
      conversation_history: [
        { role: 'user', content: 'one' },
        { role: 'assistant', content: 'uno' },
      ],
    });
    const steer = it.gateway.steer(turn, 'three');
    await say(events, 'run.completed', { output: 'due' });
    await it.ended(turn);
    expect(it.gateway.steered(steer)).toBe(false);
  });

  test('a newer one remembers by itself, until something is deleted: then it forgets, and is told what is left', async () => {
    const it = await start();
    it.past.push({ message_id: 'h1', role: 'user', text: 'kept', ts: 0 }, { message_id: 'h2', role: 'assistant', text: 'yes', ts: 1 });
    const first = it.begin('one');
    const before = await begun();
    expect(before.post.body).not.toHaveProperty('conversation_history');
    await say(before.events, 'run.completed', { output: 'uno' });
    await it.ended(first);
    it.past.splice(2);
    it.gateway.tell({ type: 'message.deleted', chat_id: 'android:default', payload: { message_ids: [`u_${first}`] } });
    const forgotten = await server.next(`/api/sessions/${String(before.post.body.session_id)}`);
    expect(forgotten.method).toBe('DELETE');
    forgotten.answer(200, {});
    const second = it.begin('two');
    const after = await begun('run_2');
    expect(after.post.body).toMatchObject({
      conversation_history: [
        { role: 'user', content: 'kept' },
        { role: 'assistant', content: 'yes' },
      ],
    });
    expect(after.post.body.session_id).not.toBe(before.post.body.session_id);
    await say(after.events, 'run.completed', { output: 'due' });
    await it.ended(second);
    await it.ended(it.begin('/new', { kind: 'command' }));
    const third = it.begin('three');
    const fresh = await begun('run_3');
    expect(fresh.post.body).not.toHaveProperty('conversation_history');
    expect(fresh.post.body.session_id).not.toBe(after.post.body.session_id);
    await say(fresh.events, 'run.completed', { output: 'tre' });
    await it.ended(third);
  });
});

test('/model offers what Hermes has, and the run is asked for it', async () => {
  server.routes.set('/api/model/options', { providers: [{ slug: 'nous', name: 'Nous', models: ['hermes-5', 'hermes-5-mini'] }] });
  const it = await start();
  const asking = it.begin('/model', { kind: 'command' });
  const { payload } = await it.frame('picker.model');
  expect(payload.providers).toMatchObject([{ id: 'nous', label: 'Nous', models: [{ id: 'hermes-5' }, { id: 'hermes-5-mini' }] }]);
  it.gateway.tell({ type: 'picker.select', payload: { picker_id: payload.picker_id, value: 'nous/hermes-5-mini' } });
  await it.ended(asking);
  const turn = it.begin('hi');
  const { post, events } = await begun();
  expect(post.body).toMatchObject({ model: 'hermes-5-mini', provider: 'nous' });
  await say(events, 'run.completed', { output: 'hi' });
  await it.ended(turn);
});

test('an endpoint that is no Hermes is asked as any other', async () => {
  const it = await start(null, { url: server.url });
  const capabilities = await server.next('/v1/capabilities');
  capabilities.answer(404, {});
  const catalog = await it.frame('commands.catalog', ({ payload }) => payload.commands.some(({ name }) => name === '/reasoning'));
  expect(catalog.payload.commands.map(({ name }) => name)).toContain('/retry');
  const turn = it.begin('hi');
  const asked = await server.next('/v1/chat/completions');
  await asked.text('hello');
  await asked.done();
  expect(await it.ended(turn)).toMatchObject({ outcome: 'completed', texts: ['hello'] });
});

test('one that is away when the agent starts is found with the first turn', async () => {
  const it = await start(null);
  (await server.next('/v1/capabilities')).answer(503, {});
  const turn = it.begin('hi');
  (await server.next('/v1/capabilities')).answer(200, { object: 'hermes.api_server.capabilities', features: newer });
  const { events } = await begun();
  await say(events, 'run.completed', { output: 'hello' });
  expect(await it.ended(turn)).toMatchObject({ outcome: 'completed', texts: ['hello'] });
});
