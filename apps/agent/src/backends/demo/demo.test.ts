import { type Processed, type ScriptedGateway, type ScriptedGatewayOptions, scriptedGateway } from '@iris/agent-link/testing';
import { frameTable } from '@iris/protocol';
import { silentLog } from '@iris/runtime';
import { type ManualClock, manualClock, seededRandom } from '@iris/runtime/testing';
import { afterEach, describe, expect, test } from '@jest/globals';
import { type RunningAgent, startAgent } from '../../start-agent.js';
import { scenes } from './scenes.js';

interface Setting {
  readonly clock: ManualClock;
  readonly gateway: ScriptedGateway;
  readonly agent: RunningAgent;
  /** Run a turn to its end. Returns its durable frames. */
  say(text: string, more?: Parameters<ScriptedGateway['startTurn']>[1]): Promise<Said>;
}
interface Said {
  readonly turn_id: string;
  readonly outcome: string | undefined;
  readonly frames: readonly Processed[];
  readonly types: readonly string[];
  /** Finished messages, streamed or whole. */
  readonly texts: readonly string[];
}

const settings: Setting[] = [];

async function attached(script: Partial<ScriptedGatewayOptions> = {}, pace_ms = 30): Promise<Setting> {
  const clock = manualClock();
  const gateway = scriptedGateway({ clock, carry: (deliver) => clock.soon(deliver), ...script });
  const agent = startAgent({
    gateway: 'ws://gateway.test/agent',
    token: 'secret',
    backend: 'demo',
    log: silentLog,
    pace_ms,
    clock,
    random: seededRandom(3).unit,
    connect: gateway.net.connect,
  });
  await clock.settle();
  const setting: Setting = {
    clock,
    gateway,
    agent,
    async say(text, more) {
      const turn_id = gateway.startTurn(text, more);
      for (let waited = 0; gateway.turns.get(turn_id)?.outcome === undefined && waited < 3_600_000; waited += 1_000)
        await clock.advance(1_000);
      return said(gateway, turn_id);
    },
  };
  settings.push(setting);
  return setting;
}

function said(gateway: ScriptedGateway, turn_id: string): Said {
  const frames = gateway.processed.filter((frame) => frame.turn_id === turn_id);
  return {
    turn_id,
    outcome: gateway.turns.get(turn_id)?.outcome,
    frames,
    types: frames.map((frame) => frame.type),
    texts: frames.flatMap((frame) =>
      frame.type === 'message.stop' ? [frame.payload.final_text] : frame.type === 'message' ? [frame.payload.text] : [],
    ),
  };
}
/** The first offered value answers every question, but for the one that is to be taken back. */
const answering = (gateway: () => ScriptedGateway) => (frame: Processed) => {
  if (!frame.type.startsWith('picker.') || frame.type === 'picker.closed') return;
  const { picker_id, title, choices, providers } = frame.payload as {
    picker_id: string;
    title?: string;
    choices?: { value: string }[];
    providers?: { id: string; models: { id: string }[] }[];
  };
  if (title?.startsWith('Quick')) return;
  gateway().tell({
    type: 'picker.select',
    payload: { picker_id, value: choices?.[0]?.value ?? `${providers![0]!.id}/${providers![0]!.models[0]!.id}` },
  });
};

afterEach(async () => {
  for (const { clock, gateway, agent } of settings.splice(0)) {
    await clock.settle();
    expect(gateway.faults).toEqual([]);
    const stopped = agent.stop();
    await clock.advance(12_000);
    expect(await stopped).toMatchObject({ reason: 'stopped' });
    expect(clock.timers).toBe(0);
  }
});

describe('a conversation', () => {
  test('thinks, works, and streams markdown', async () => {
    const { say, gateway } = await attached();
    const greeting = await say('Hello there');
    expect(greeting.outcome).toBe('completed');
    expect(greeting.types).toEqual([
      'turn.accepted',
      'message.start',
      'tool.start',
      'agent.busy',
      'tool.end',
      'agent.busy',
      'message.stop',
      'turn.end',
    ]);
    expect(greeting.texts[0]).toContain('**demo agent**');
    expect(greeting.frames.find((frame) => frame.type === 'message.stop')?.payload).toMatchObject({
      reasoning: expect.stringContaining('2 words'),
      model: 'demo/scripted',
      runtime: { model: 'scripted', latency: expect.any(Number), context_pct: 1 },
    });
    const deltas = gateway.passing.filter((frame) => frame.type === 'message.delta').map((frame) => frame.payload.text);
    expect(deltas.length).toBeGreaterThan(20);
    expect(deltas.join('')).toBe(greeting.texts[0]);
    expect(gateway.passing.some((frame) => frame.type === 'reasoning.delta')).toBe(true);
  });

  test('answers the same message alike, a question with a second tool', async () => {
    const { say } = await attached();
    const first = await say('How do I deploy this?');
    const second = await say('How do I deploy this?', { chat_id: 'android:chan_2' });
    expect(second.texts).toEqual(first.texts);
    expect(first.types.filter((type) => type === 'tool.start')).toHaveLength(2);
    expect(first.types).toContain('commentary');
    expect(first.texts[0]).toContain('> How do I deploy this?');
  });

  test('takes what is added while it streams', async () => {
    const { clock, gateway } = await attached();
    const turn_id = gateway.startTurn('Tell me something');
    await clock.advance(1_000);
    const seq = gateway.steer(turn_id, 'and quickly');
    await clock.advance(20_000);
    expect(gateway.steered(seq)).toBe(true);
    expect(said(gateway, turn_id).texts[0]).toContain('> and quickly');
  });

  test('stops in the middle of a word, with what there is', async () => {
    const { clock, gateway } = await attached();
    const turn_id = gateway.startTurn('Tell me something');
    await clock.advance(1_500);
    gateway.stop(turn_id);
    await clock.settle();
    const { outcome, texts, types } = said(gateway, turn_id);
    expect(outcome).toBe('cancelled');
    expect(types.slice(-2)).toEqual(['message.stop', 'turn.end']);
    expect(texts[0]!.length).toBeLessThan(300);
  });

  test.each([
    ['Can you please compare the two Postgres backup tools for me?', 'Compare two Postgres backup tools'],
    ['wie backe ich das beste Brot', 'Backe beste Brot'],
    ['is it?', 'Is it'],
    ['日本語のタイトル', '日本語のタイトル'],
  ])('names a lane that has an automatic name: %s', async (text, name) => {
    const { say } = await attached();
    const { frames } = await say(text, { thread_id: 't_1', auto: true });
    expect(frames.some((frame) => frame.type === 'channel.rename')).toBe(false);
    expect(settings.at(-1)!.gateway.processed.find((frame) => frame.type === 'channel.rename')).toMatchObject({
      thread_id: 't_1',
      payload: { name, only_if_current: 'Default' },
    });
  });

  test('leaves a name alone that somebody gave, and one that has no words', async () => {
    const { say, gateway } = await attached();
    await say('Hello');
    await say('?!', { auto: true });
    expect(gateway.processed.some((frame) => frame.type === 'channel.rename')).toBe(false);
  });
});

describe('commands', () => {
  const command = { kind: 'command' as const };

  test('are in the catalog, with slash, hint and category', async () => {
    const { gateway } = await attached();
    const catalog = gateway.processed.find((frame) => frame.type === 'commands.catalog')!.payload.commands;
    expect(catalog.map(({ name }) => name)).toEqual(['/help', '/new', '/status', '/model', '/title', '/demo']);
    for (const entry of catalog) expect(entry).toMatchObject({ description: expect.any(String), category: expect.any(String) });
  });

  test('/help, /status, /new, /model, /title', async () => {
    let gateway: ScriptedGateway | undefined;
    const setting = await attached({ onProcessed: (frame) => answering(() => gateway!)(frame) });
    gateway = setting.gateway;
    const { say } = setting;
    expect((await say('/help', command)).texts[0]).toContain('`/demo [scene]`');
    await say('one');
    expect((await say('/status', command)).texts[0]).toContain('| messages | 1 |');
    expect((await say('/new Fresh', command)).texts[0]).toContain('Fresh');
    expect((await say('/status', command)).texts[0]).toMatch(/\| messages \| 0 \|[\s\S]*\| link \| up \|/);
    expect((await say('/model', command)).texts[0]).toContain('`demo/scripted`');
    expect((await say('/model other', command)).texts[0]).toContain('`demo/other`');
    expect((await say('hi')).frames.find((frame) => frame.type === 'message.stop')?.payload).toMatchObject({ model: 'demo/other' });
    expect((await say('/title', command)).texts[0]).toContain('/title <name>');
    await say('/title Demo place', command);
    expect(gateway.processed.find((frame) => frame.type === 'channel.rename')?.payload).toEqual({ name: 'Demo place' });
  });
});

describe('/demo', () => {
  const command = { kind: 'command' as const };

  test.each([
    ['/demo echo hello  world ', 'hello  world '],
    ['/demo echo  indented', ' indented'],
    ['/demo echo a\nb 🌈', 'a\nb 🌈'],
    ['demo echo as a turn', 'as a turn'],
    ['/DEMO ECHO loud', 'loud'],
  ])('echo answers exactly: %j', async (text, expected) => {
    const { say } = await attached();
    expect((await say(text)).texts).toEqual([expected]);
  });

  test('fast takes no time at all, a thousand times', async () => {
    const { gateway, clock } = await attached();
    const before = clock.now();
    const turns = Array.from({ length: 1_000 }, () => gateway.startTurn('/demo fast', command));
    await clock.settle();
    expect(clock.now()).toBe(before);
    for (const turn_id of turns) expect(said(gateway, turn_id).types).toEqual(['turn.accepted', 'message', 'turn.end']);
  });

  test('fail ends as failed, with half a sentence', async () => {
    const { say, gateway } = await attached();
    const { outcome, texts, turn_id } = await say('/demo fail out of ideas', command);
    expect([outcome, texts]).toEqual(['failed', ['This sentence will not be']]);
    expect(gateway.turns.get(turn_id)!.error).toBe('out of ideas');
  });

  test('long, slow and flood are as long, slow and large as asked', async () => {
    const { say, clock } = await attached();
    expect((await say('/demo long 1000 1', command)).texts[0]!.match(/This is sentence/g)).toHaveLength(1_000);
    const before = clock.now();
    expect((await say('/demo slow 42', command)).texts).toEqual(['That took 42 seconds.']);
    expect(clock.now() - before).toBeGreaterThanOrEqual(42_000);
    const flood = (await say('/demo flood 500 2048', command)).frames.filter((frame) => frame.type === 'commentary');
    expect(flood).toHaveLength(500);
    expect(Buffer.byteLength(flood[0]!.payload.text)).toBeGreaterThan(2_000);
  });

  test('cron comes by itself, once per occurrence', async () => {
    const { say, clock, gateway } = await attached();
    const { turn_id } = await say('/demo cron 5', { ...command, thread_id: 't_3' });
    const crons = () => gateway.processed.filter((frame) => frame.turn_id === undefined && frame.type === 'message');
    expect(crons()).toHaveLength(0);
    await clock.advance(5_000);
    expect(crons()).toMatchObject([{ thread_id: 't_3', payload: { role: 'cron', message_id: `cron:${turn_id}` } }]);
  });

  test('says that media are off when they are, and offers them when they are on', async () => {
    expect((await (await attached()).say('/demo media', command)).texts[0]).toContain('`unsupported`');
    const realFetch = globalThis.fetch;
    const put: Uint8Array[] = [];
    globalThis.fetch = async (_url, init) => {
      put.push(init?.body as Uint8Array);
      return new Response(null, { status: 200 });
    };
    try {
      const on = await attached({
        answer: (frame) =>
          frame.type === 'media.request'
            ? { type: 'media.grant', payload: { media_id: 'md_1', url: 'http://x/', expires_at: 1 } }
            : undefined,
      });
      expect((await on.say('/demo media', command)).types).toEqual(expect.arrayContaining(['media.offer', 'message']));
      expect([...put[0]!.subarray(0, 8)]).toEqual([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
    } finally {
      globalThis.fetch = realFetch;
    }
  });

  test('a question nobody answers ends by itself', async () => {
    const { say } = await attached();
    const { outcome, texts } = await say('/demo choice 5', command);
    expect([outcome, texts]).toEqual(['completed', ['Nobody answered (expired).\n\n']]);
  });

  test('an unknown scene is answered by the list', async () => {
    const { say } = await attached();
    const { texts } = await say('/demo constructor', command);
    for (const scene of scenes) expect(texts[0]).toContain(`/demo ${scene.name}`);
  });

  test.each(scenes.map((scene) => [scene.name]))('%s ends, and can be stopped', async (name) => {
    const { say, clock, gateway } = await attached();
    const { outcome } = await say(`/demo ${name}`, command);
    expect(outcome).toBe(name === 'fail' ? 'failed' : 'completed');
    const turn_id = gateway.startTurn(`/demo ${name}`, command);
    await clock.advance(50);
    gateway.stop(turn_id);
    await clock.settle();
    expect(said(gateway, turn_id).outcome).toBeDefined();
  });

  test('the tour shows every frame type that an agent can cause', async () => {
    let gateway: ScriptedGateway | undefined;
    const setting = await attached({
      onProcessed: (frame) => answering(() => gateway!)(frame),
      answer: (frame) =>
        frame.type === 'media.request'
          ? { type: 'media.grant', payload: { media_id: 'md_1', url: 'http://x/', expires_at: 1 } }
          : undefined,
    });
    gateway = setting.gateway;
    const realFetch = globalThis.fetch;
    globalThis.fetch = async () => new Response(null, { status: 200 });
    let tour: Said;
    try {
      tour = await setting.say('/demo', command);
    } finally {
      globalThis.fetch = realFetch;
    }
    await setting.clock.advance(10_000);
    expect(tour.outcome).toBe('completed');
    const types = new Set<string>([...gateway.processed, ...gateway.passing].map((frame) => frame.type));
    // What an agent says that devices see under the same name.
    const shown = Object.entries(frameTable).flatMap(([type, row]) => ('agent_up' in row && 'down' in row ? [type] : []));
    const besides = new Set(['hello', 'pong', 'ack']);
    expect(shown.filter((type) => !types.has(type) && !besides.has(type))).toEqual([]);
    for (const type of ['channel.create', 'channel.rename', 'message.delete', 'search', 'turn.end']) expect(types).toContain(type);
    const of = <T extends Processed['type']>(type: T) =>
      gateway.processed.filter((frame): frame is Extract<Processed, { type: T }> => frame.type === type);
    expect(new Set(of('notification').map((frame) => frame.payload.kind)).size).toBe(6);
    expect(new Set(of('agent.busy').map((frame) => frame.payload.reason)).size).toBe(4);
    expect(new Set(of('message').map((frame) => frame.payload.role))).toEqual(new Set(['assistant', 'system', 'cron']));
    expect(new Set(of('channel.create').map((frame) => frame.payload.kind))).toEqual(new Set(['channel', 'thread']));
    expect(of('picker.clarify').some((frame) => frame.payload.multi)).toBe(true);
  });

  test('the tour without anybody there ends in a few minutes', async () => {
    const { say, clock } = await attached();
    const before = clock.now();
    expect((await say('/demo', command)).outcome).toBe('completed');
    expect(clock.now() - before).toBeLessThan(6 * 60_000);
  });
});
