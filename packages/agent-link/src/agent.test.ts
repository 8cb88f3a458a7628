import { type ManualClock, manualClock, seededRandom } from '@iris/runtime/testing';
import { afterEach, describe, expect, test } from '@jest/globals';
import { runAgent } from './agent.js';
import type { Agent, AgentOptions, LinkStatus } from './agent-options.js';
import { type ScriptedGateway, type ScriptedGatewayOptions, scriptedGateway } from './testing.js';
import type { Turn } from './types.js';

interface Setting {
  readonly clock: ManualClock;
  readonly gateway: ScriptedGateway;
  readonly agent: Agent;
  readonly statuses: LinkStatus[];
  /** Types of the durable frames the gateway has processed, but for {@link besides}. */
  types(): string[];
}

const settings: Setting[] = [];
/** Said at the start of each process and of each link, whatever the test does. */
const besides = new Set<string>(['commands.catalog', 'turn.snapshot']);

/** An agent that has said hello to a scripted gateway. */
async function attached(options: Partial<AgentOptions> = {}, script: Partial<ScriptedGatewayOptions> = {}): Promise<Setting> {
  const clock = manualClock();
  const gateway = scriptedGateway({ clock, carry: (deliver) => clock.soon(deliver), ...script });
  const statuses: LinkStatus[] = [];
  const agent = runAgent({
    gateway: 'ws://gateway.test/agent',
    token: 'secret',
    name: 'test',
    version: '1.2.3',
    onTurn: () => 'Hello.',
    onStatus: (status) => statuses.push(status),
    connect: gateway.net.connect,
    clock,
    random: seededRandom(7).unit,
    ...options,
  });
  await clock.settle();
  const setting = {
    clock,
    gateway,
    agent,
    statuses,
    types: () => gateway.processed.map((frame) => frame.type).filter((type) => !besides.has(type)),
  };
  settings.push(setting);
  return setting;
}

/** A turn that is held open until the test lets go. */
function held() {
  let turn: Turn | undefined;
  let letGo: (result?: string) => void = () => {};
  let calls = 0;
  const onTurn = (given: Turn) => {
    calls++;
    turn = given;
    return new Promise<string | undefined>((resolve) => {
      letGo = resolve;
    }) as Promise<string>;
  };
  return {
    onTurn,
    get turn() {
      if (!turn) throw new Error('no turn has begun');
      return turn;
    },
    get calls() {
      return calls;
    },
    letGo: (result?: string) => letGo(result),
  };
}

afterEach(async () => {
  for (const { clock, gateway, agent } of settings.splice(0)) {
    await clock.settle();
    expect(gateway.faults).toEqual([]);
    const stopped = agent.stop();
    await clock.advance(12_000);
    await stopped;
    await clock.settle();
    expect(clock.timers).toBe(0);
  }
});

describe('hello', () => {
  test('LNK12: says who it is, what it can do, and where it stands', async () => {
    const { gateway, agent, statuses } = await attached();
    expect(gateway.hellos).toEqual([
      {
        agent: 'test',
        version: '1.2.3',
        install_id: expect.stringMatching(/^in_[0-9a-z]{20}$/),
        boot_id: expect.stringMatching(/^boot_[0-9a-z]{20}$/),
        caps: expect.objectContaining({ stream: true, reasoning: true, tools: true, steer: true, stop: true, resume: true, delete: false }),
        last_seq: 0,
        open_turns: [],
      },
    ]);
    expect(agent.online).toBe(true);
    expect(agent.channels()).toEqual([{ chat_id: 'android:default', name: 'Default', kind: 'default', is_default: true }]);
    expect(statuses).toEqual([{ state: 'online' }]);
  });

  test('LNK38: sends its catalog at the start, when it changes, and when asked', async () => {
    const { gateway, agent, clock } = await attached({ commands: [{ name: '/help', description: 'What I can do', run: () => 'help' }] });
    const catalogs = () => gateway.processed.filter((frame) => frame.type === 'commands.catalog').map((frame) => frame.payload);
    expect(catalogs()).toEqual([{ commands: [{ name: '/help', description: 'What I can do' }], rev: expect.any(String) }]);
    gateway.say({ type: 'commands.catalog', payload: {} });
    await clock.settle();
    expect(catalogs()[1]).toEqual(catalogs()[0]);
    agent.setCommands([{ name: '/other', description: 'Another' }]);
    await clock.settle();
    expect(catalogs()).toHaveLength(3);
    expect(catalogs()[2]).not.toEqual(catalogs()[0]);
    gateway.net.cut();
    await clock.advance(1_000);
    expect(catalogs()).toHaveLength(3);
  });

  test.each([
    ['a path', 'gateway'],
    ['another scheme', 'https://gateway.test/agent'],
  ])('refuses %s for a gateway at once', (_, gateway) => {
    expect(() => runAgent({ gateway, token: 't', name: 'x', onTurn: () => '' })).toThrow(/URL|WebSocket address/);
  });
});

describe('a turn', () => {
  test('is accepted, answered with what the function returns, and ended', async () => {
    const { gateway, clock, types } = await attached({ onTurn: (turn) => `You said ${turn.message.text}` });
    const turn_id = gateway.startTurn('hi');
    await clock.settle();
    expect(types()).toEqual(['turn.accepted', 'message.start', 'message.stop', 'turn.end']);
    const turn = gateway.turns.get(turn_id)!;
    expect(turn.outcome).toBe('completed');
    expect([...turn.messages.values()].map((message) => message.text)).toEqual(['You said hi']);
    expect(gateway.unacked).toBe(0);
  });

  test('LNK19 LNK33: is the same turn however often it is given', async () => {
    const held_ = held();
    const { gateway, clock } = await attached({ onTurn: held_.onTurn });
    const turn_id = gateway.startTurn('hi');
    await clock.settle();
    gateway.startTurn('hi', { turn_id, attempt: 2 });
    await clock.settle();
    held_.letGo();
    await clock.settle();
    gateway.startTurn('hi', { turn_id, attempt: 3 });
    await clock.settle();
    expect(held_.calls).toBe(1);
    expect(gateway.unacked).toBe(0);
  });

  test('LNK23 LNK24: streams text as deltas behind one another, then the whole', async () => {
    const held_ = held();
    const { gateway, clock } = await attached({ onTurn: held_.onTurn });
    gateway.startTurn('hi');
    await clock.settle();
    const { turn } = held_;
    turn.reason('Let me see. ');
    turn.write('One ');
    turn.write('two ');
    await clock.settle();
    turn.write('🌈 three');
    await clock.settle();
    turn.meta({ model: 'm1', tokens: 5, runtime: { model: 'm1', cost: 0.5 } });
    await clock.advance(1_500);
    held_.letGo();
    await clock.settle();
    const deltas = gateway.passing.filter((frame) => frame.type === 'message.delta').map((frame) => frame.payload);
    const { message_id } = turn.stream();
    expect(message_id).not.toBe(deltas[0]!.message_id);
    expect(deltas.map(({ offset, text }) => [offset, text])).toEqual([
      [0, 'One two '],
      [8, '🌈 three'],
    ]);
    expect(gateway.processed.find((frame) => frame.type === 'message.stop')?.payload).toEqual({
      message_id: deltas[0]!.message_id,
      final_text: 'One two 🌈 three',
      reasoning: 'Let me see. ',
      model: 'm1',
      tokens: 5,
      runtime: { model: 'm1', cost: 0.5, latency: 1.5 },
    });
  });

  test('never splits a character, and makes good what the wire cannot carry', async () => {
    const { gateway, clock } = await attached({
      async onTurn(turn) {
        const rainbow = '🌈';
        turn.write(`a${rainbow[0]}`);
        await Promise.resolve();
        turn.write(`${rainbow[1]}b\u0000c\udc00d`);
        turn.write(rainbow[0]!);
      },
    });
    gateway.startTurn('hi');
    await clock.settle();
    const stop = gateway.processed.find((frame) => frame.type === 'message.stop');
    expect(stop?.payload.final_text).toBe('a🌈b\ufffdc\ufffdd\ufffd');
  });

  test('pours an async iterable into the answer, chunk by chunk', async () => {
    const { gateway, clock } = await attached({
      async *onTurn() {
        yield 'Hello';
        yield ', ';
        yield 'world';
      },
    });
    const turn_id = gateway.startTurn('hi');
    await clock.settle();
    expect([...gateway.turns.get(turn_id)!.messages.values()][0]).toMatchObject({ text: 'Hello, world', stopped: true });
  });

  test('carries a text over 64 KiB as several messages, cut between words where it can, losing nothing', async () => {
    const text = 'wörter 🌈 '.repeat(20_000);
    const { gateway, clock } = await attached({
      onTurn(turn) {
        for (let i = 0; i < text.length; i += 1_000) turn.write(text.slice(i, i + 1_000));
        turn.stop();
        turn.say(text);
      },
    });
    gateway.startTurn('hi');
    await clock.settle();
    const streamed = gateway.processed.flatMap((frame) => (frame.type === 'message.stop' ? [frame.payload.final_text] : []));
    const said = gateway.processed.flatMap((frame) => (frame.type === 'message' ? [frame.payload.text] : []));
    for (const pieces of [streamed, said]) {
      expect(pieces.length).toBeGreaterThan(3);
      expect(pieces.join('')).toBe(text);
      for (const piece of pieces) expect(Buffer.byteLength(piece)).toBeLessThanOrEqual(64 * 1024);
    }
    for (const piece of said.slice(0, -1)) expect(piece.endsWith(' ')).toBe(true);
    expect(new Set(gateway.processed.flatMap((frame) => (frame.type === 'message.start' ? [frame.payload.message_id] : []))).size).toBe(
      streamed.length,
    );
  });

  test('that throws ends as failed, with what was written and why', async () => {
    const { gateway, clock } = await attached({
      async onTurn(turn) {
        turn.write('So far');
        turn.tool('search');
        await Promise.resolve();
        throw new Error('the model is gone');
      },
    });
    const turn_id = gateway.startTurn('hi');
    await clock.settle();
    const turn = gateway.turns.get(turn_id)!;
    expect(turn).toMatchObject({ outcome: 'failed', error: 'the model is gone' });
    expect([...turn.messages.values()]).toMatchObject([{ text: 'So far', stopped: true }]);
    expect([...turn.tools.values()]).toEqual([{ name: 'search', ok: false }]);
  });

  test('that throws before its first await fails as well', async () => {
    const { gateway, clock } = await attached({
      onTurn() {
        throw new Error('at once');
      },
    });
    const turn_id = gateway.startTurn('hi');
    await clock.settle();
    expect(gateway.turns.get(turn_id)).toMatchObject({ outcome: 'failed', error: 'at once' });
  });

  test('says everything that can be said', async () => {
    const held_ = held();
    const { gateway, clock, types } = await attached({ onTurn: held_.onTurn });
    gateway.startTurn('hi', { thread_id: 't_1', auto: true });
    await clock.settle();
    const { turn } = held_;
    turn.commentary('Looking.');
    const tool = turn.tool('terminal', { preview: 'ls', args: { command: 'ls' } });
    tool.progress('running');
    await clock.advance(2_000);
    tool.end({ output_preview: 'x'.repeat(3_000) });
    tool.end();
    turn.notify({ kind: 'cron', title: 'T', body: 'B' });
    turn.typing(true);
    turn.offer({ media_id: 'md_1', kind: 'image', mime: 'image/png', size: 3 });
    const said = turn.say('Done', { reply_to: 'm_0', message_id: 'own' });
    turn.delete([said]);
    turn.title('A better name');
    held_.letGo();
    await clock.settle();
    expect(types()).toEqual([
      'turn.accepted',
      'commentary',
      'tool.start',
      'agent.busy',
      'tool.end',
      'agent.busy',
      'notification',
      'media.offer',
      'message',
      'message.delete',
      'channel.rename',
      'turn.end',
    ]);
    const payloads = (type: string) => gateway.processed.filter((frame) => frame.type === type).map((frame) => frame.payload);
    expect(payloads('tool.end')).toEqual([{ index: 1, name: 'terminal', ok: true, duration: 2, output_preview: 'x'.repeat(2_000) }]);
    expect(payloads('agent.busy')).toEqual([{ reason: 'tool' }, { reason: 'processing' }]);
    expect(payloads('message')).toMatchObject([{ message_id: 'own', text: 'Done', reply_to: 'm_0', runtime: { latency: 2 } }]);
    expect(payloads('channel.rename')).toEqual([{ name: 'A better name', only_if_current: 'Default' }]);
    expect(gateway.processed.slice(1).every((frame) => frame.thread_id === 't_1')).toBe(true);
    expect(gateway.passing.map((frame) => frame.type)).toEqual(expect.arrayContaining(['tool.progress', 'typing']));
  });

  test('runs its command, found by name or alias, in any case', async () => {
    const runs: unknown[] = [];
    const { gateway, clock } = await attached({
      commands: [
        { name: '/echo', description: 'Say it again', aliases: ['/say'], run: (turn) => turn.command?.args ?? '' },
        { name: '/plain', description: 'No function of its own' },
      ],
      onTurn: (turn) => {
        runs.push(turn.command);
        return '';
      },
    });
    const text = async (message: string) => {
      const turn_id = gateway.startTurn(message, { kind: 'command' });
      await clock.settle();
      return [...gateway.turns.get(turn_id)!.messages.values()].map((seen) => seen.text).join();
    };
    expect(await text('/echo  a  b ')).toBe('a  b');
    expect(await text('/SAY x\ny')).toBe('x\ny');
    expect(await text('/plain 1')).toBe('');
    expect(await text('/constructor')).toBe('');
    expect(runs).toEqual([{ name: '/plain', args: '1' }, undefined]);
  });

  test('of a command beside a running turn says nothing of busy', async () => {
    const held_ = held();
    const { gateway, clock, types } = await attached({
      onTurn: held_.onTurn,
      commands: [{ name: '/tool', description: '', run: (turn) => turn.tool('x').end() }],
    });
    gateway.startTurn('hi');
    await clock.settle();
    gateway.startTurn('/tool', { kind: 'command' });
    await clock.settle();
    expect(types()).not.toContain('agent.busy');
    held_.letGo();
    await clock.settle();
    gateway.startTurn('/tool', { kind: 'command' });
    await clock.settle();
    expect(types().filter((type) => type === 'agent.busy')).toHaveLength(2);
  });
});

describe('stop', () => {
  test('closes what is open at once, says nothing more, and ends when the function is back', async () => {
    const held_ = held();
    const { gateway, clock, types } = await attached({ onTurn: held_.onTurn });
    const turn_id = gateway.startTurn('hi');
    await clock.settle();
    const { turn } = held_;
    turn.write('partial');
    turn.tool('search');
    const asked = turn.ask.confirm({ title: 'Sure?' });
    await clock.settle();
    gateway.stop(turn_id);
    await clock.settle();
    expect(turn.signal.aborted).toBe(true);
    expect(await asked).toEqual({ value: null, reason: 'stopped' });
    const before = types();
    turn.write('more');
    turn.tool('again').end();
    turn.say('no');
    turn.commentary('no');
    expect(await turn.ask.choice({ choices: [{ value: 'a', label: 'A' }] })).toEqual({ value: null, reason: 'stopped' });
    await clock.settle();
    expect(types()).toEqual(before);
    expect(before.slice(-2)).toEqual(['message.stop', 'tool.end']);
    held_.letGo('ignored');
    await clock.settle();
    expect(types().slice(before.length)).toEqual(['turn.end']);
    expect(gateway.turns.get(turn_id)!.outcome).toBe('cancelled');
  });

  test('LNK21: ends the turn in time when the function never comes back', async () => {
    const { gateway, clock } = await attached({ onTurn: () => new Promise<void>(() => {}) });
    const turn_id = gateway.startTurn('hi');
    await clock.settle();
    gateway.stop(turn_id);
    await clock.advance(7_900);
    expect(gateway.turns.get(turn_id)!.outcome).toBeUndefined();
    await clock.advance(200);
    expect(gateway.turns.get(turn_id)!.outcome).toBe('cancelled');
  });

  test('in the same breath as the start cancels the turn', async () => {
    const { gateway, clock } = await attached({
      onTurn: (turn) => new Promise<void>((resolve) => turn.signal.addEventListener('abort', () => resolve())),
    });
    const turn_id = gateway.startTurn('hi');
    gateway.stop(turn_id);
    await clock.settle();
    expect(gateway.turns.get(turn_id)!.outcome).toBe('cancelled');
  });

  test('ends an iterable that hangs, and tells it', async () => {
    let told = false;
    const { gateway, clock } = await attached({
      onTurn: () => ({
        [Symbol.asyncIterator]: () => ({
          next: () => new Promise<IteratorResult<string>>(() => {}),
          return: async () => {
            told = true;
            return { done: true as const, value: undefined };
          },
        }),
      }),
    });
    const turn_id = gateway.startTurn('hi');
    await clock.settle();
    gateway.stop(turn_id);
    await clock.settle();
    expect(told).toBe(true);
    expect(gateway.turns.get(turn_id)!.outcome).toBe('cancelled');
  });

  test('of an unknown turn, and a deleted channel, harm nobody', async () => {
    const held_ = held();
    const { gateway, clock } = await attached({ onTurn: held_.onTurn });
    gateway.stop('tn_never');
    const turn_id = gateway.startTurn('hi', { chat_id: 'android:chan_3', thread_id: 't_4' });
    await clock.settle();
    gateway.tell({ type: 'channel.deleted', payload: { chat_id: 'android:chan_3', thread_id: 't_5' } });
    await clock.settle();
    expect(held_.turn.signal.aborted).toBe(false);
    gateway.tell({ type: 'channel.deleted', payload: { chat_id: 'android:chan_3' } });
    await clock.settle();
    expect(held_.turn.signal.aborted).toBe(true);
    held_.letGo();
    await clock.settle();
    expect(gateway.turns.get(turn_id)!.outcome).toBe('cancelled');
    expect(gateway.unacked).toBe(0);
  });
});

describe('steer', () => {
  test('LNK22: is taken only by a function that wants it', async () => {
    const held_ = held();
    const { gateway, clock } = await attached({ onTurn: held_.onTurn });
    const turn_id = gateway.startTurn('hi');
    await clock.settle();
    const none = gateway.steer(turn_id, 'one');
    const unknown = gateway.steer('tn_gone', 'two');
    await clock.settle();
    const heard: string[] = [];
    held_.turn.onSteer((text) => {
      heard.push(text);
      return text !== 'no';
    });
    const yes = gateway.steer(turn_id, 'yes');
    const no = gateway.steer(turn_id, 'no');
    await clock.settle();
    held_.turn.onSteer(() => {
      throw new Error('broken');
    });
    const broken = gateway.steer(turn_id, 'three');
    await clock.settle();
    held_.letGo();
    await clock.settle();
    const late = gateway.steer(turn_id, 'late');
    await clock.settle();
    expect([none, unknown, yes, no, broken, late].map((seq) => gateway.steered(seq))).toEqual([false, false, true, false, false, false]);
    expect(heard).toEqual(['yes', 'no']);
  });

  test('is answered again on the next link when the answer may be lost', async () => {
    const held_ = held();
    const { gateway, clock } = await attached({ onTurn: held_.onTurn });
    const turn_id = gateway.startTurn('hi');
    await clock.settle();
    held_.turn.onSteer(() => true);
    const seq = gateway.steer(turn_id, 'one');
    // The steer arrives, its answer does not.
    gateway.net.cutAfter(1);
    await clock.settle();
    expect(gateway.steered(seq)).toBeUndefined();
    await clock.advance(1_000);
    expect(gateway.steered(seq)).toBe(true);
    held_.letGo();
  });
});

describe('questions', () => {
  test('LNK42: of all five kinds, with the answers in their own types', async () => {
    const held_ = held();
    const { gateway, clock } = await attached({ onTurn: held_.onTurn });
    gateway.startTurn('hi');
    await clock.settle();
    const { ask } = held_.turn;
    const answered = async (asked: Promise<unknown>, value: string | string[]) => {
      await clock.settle();
      const picker = gateway.processed.at(-2)!.type.startsWith('picker.') ? gateway.processed.at(-2)! : gateway.processed.at(-1)!;
      gateway.tell({ type: 'picker.select', payload: { picker_id: (picker.payload as { picker_id: string }).picker_id, value } });
      return { picker: picker.payload, answer: await asked };
    };
    const choices = [
      { value: 'low', label: 'Low' },
      { value: 'high', label: 'High', is_current: true },
    ];
    expect(await answered(ask.choice({ title: 'Effort', choices }), 'high')).toEqual({
      picker: { picker_id: expect.any(String), title: 'Effort', choices },
      answer: { value: 'high', reason: 'answered' },
    });
    expect(await answered(ask.approval({ title: 'Run it?', command: 'rm -r x', timeout_ms: 5_000 }), 'approve')).toMatchObject({
      picker: { command: 'rm -r x', expires_at: clock.now() + 5_000, choices: [{ value: 'approve' }, { value: 'deny' }] },
      answer: { value: 'approve' },
    });
    expect(await answered(ask.confirm({ title: 'Sure?' }), 'no')).toMatchObject({ answer: { value: false } });
    expect(await answered(ask.confirm({ title: 'Sure?' }), 'yes')).toMatchObject({ answer: { value: true } });
    expect(await answered(ask.clarify({ question: 'Where?' }), 'here')).toMatchObject({
      picker: { question: 'Where?', allow_text: true },
      answer: { value: 'here' },
    });
    expect(await answered(ask.clarify({ question: 'Which?', choices, multi: true }), ['low', 'high'])).toMatchObject({
      picker: { multi: true, allow_text: false },
      answer: { value: ['low', 'high'] },
    });
    const providers = [
      { id: 'a', label: 'A', models: [{ id: 'b/c', label: 'BC' }] },
      { id: 'a/b', label: 'AB', models: [{ id: 'd', label: 'D' }] },
    ];
    expect(await answered(ask.model({ providers }), 'a/b/c')).toMatchObject({ answer: { value: { provider: 'a', model: 'b/c' } } });
    expect(await answered(ask.model({ providers }), 'a/b/d')).toMatchObject({ answer: { value: { provider: 'a/b', model: 'd' } } });
    held_.letGo();
  });

  test('show that the turn waits, and go on where it was', async () => {
    const held_ = held();
    const { gateway, clock } = await attached({ onTurn: held_.onTurn });
    gateway.startTurn('hi');
    await clock.settle();
    const tool = held_.turn.tool('x');
    const asked = held_.turn.ask.confirm({ title: '?' });
    await clock.settle();
    const picker = gateway.processed.find((frame) => frame.type === 'picker.confirm')!;
    gateway.tell({ type: 'picker.select', payload: { picker_id: picker.payload.picker_id, value: 'yes' } });
    await asked;
    tool.end();
    held_.letGo();
    await clock.settle();
    const reasons = gateway.processed.flatMap((frame) => (frame.type === 'agent.busy' ? [frame.payload.reason] : []));
    expect(reasons).toEqual(['tool', 'waiting_input', 'tool', 'processing']);
  });

  test('LNK43: end without an answer: expired by the gateway, overdue, withdrawn, with the turn', async () => {
    const held_ = held();
    const { gateway, clock } = await attached({ onTurn: held_.onTurn });
    gateway.startTurn('hi');
    await clock.settle();
    const { ask } = held_.turn;
    const picker_id = () => {
      const pickers = gateway.processed.filter((frame) => frame.type === 'picker.confirm');
      return pickers.at(-1)!.payload.picker_id;
    };
    const expired = ask.confirm({ title: '1', timeout_ms: 1_000 });
    await clock.settle();
    gateway.tell({ type: 'picker.closed', payload: { picker_id: picker_id(), reason: 'expired' } });
    expect(await expired).toEqual({ value: null, reason: 'expired' });

    const overdue = ask.confirm({ title: '2', timeout_ms: 1_000 });
    await clock.advance(17_000);
    expect(await overdue).toEqual({ value: null, reason: 'expired' });
    expect(gateway.processed.some((frame) => frame.type === 'picker.closed' && frame.payload.picker_id === picker_id())).toBe(true);

    const abort = new AbortController();
    const withdrawn = ask.confirm({ title: '3', signal: abort.signal });
    await clock.settle();
    abort.abort();
    expect(await withdrawn).toEqual({ value: null, reason: 'withdrawn' });
    expect(await ask.confirm({ title: '4', signal: abort.signal })).toEqual({ value: null, reason: 'withdrawn' });
    // An answer that crossed the withdrawal is nobody's any more.
    gateway.tell({ type: 'picker.select', payload: { picker_id: picker_id(), value: 'yes' } });

    const last = ask.confirm({ title: '5' });
    held_.letGo();
    expect(await last).toEqual({ value: null, reason: 'turn_ended' });
    await clock.settle();
    expect(await ask.confirm({ title: '6' })).toEqual({ value: null, reason: 'turn_ended' });
  });
});

describe('outside any turn', () => {
  test('LNK28: a cron message goes to the default channel, or where it is told', async () => {
    const { gateway, agent, clock } = await attached();
    agent.lane().say('Good morning', { role: 'cron', message_id: 'cron:2026-01-01' });
    agent.lane('android:chan_2', 't_3').notify({ title: 'T', body: 'B' });
    await clock.settle();
    expect(gateway.processed.slice(1)).toMatchObject([
      { type: 'message', chat_id: 'android:default', payload: { role: 'cron', text: 'Good morning', message_id: 'cron:2026-01-01' } },
      { type: 'notification', chat_id: 'android:chan_2', thread_id: 't_3', payload: { kind: 'generic' } },
    ]);
  });

  test('requests are answered by id; refusals carry their code', async () => {
    const { gateway, agent, clock } = await attached(
      {},
      {
        answer: (frame) =>
          frame.type === 'search' ? { type: 'error', payload: { code: 'rate_limited', message: 'slow', retry_after_ms: 9 } } : undefined,
      },
    );
    const created = agent.createChannel('News');
    const thread = agent.lane('android:chan_1').createThread('Talk');
    const history = agent.lane().history({ limit: 5 });
    const renamed = agent.lane('android:chan_1').rename('Newer');
    const search = agent.search('x');
    const upload = agent.lane().upload({ kind: 'file', mime: 'text/plain', bytes: new Uint8Array([1]) });
    expect(await created).toMatchObject({ chat_id: 'android:chan_1', name: 'News' });
    expect(await thread).toMatchObject({ name: 'Talk', kind: 'thread', parent_chat_id: 'android:chan_1' });
    expect(await history).toEqual({ messages: [], has_more: false });
    await renamed;
    await expect(search).rejects.toMatchObject({ code: 'rate_limited', retry_after_ms: 9 });
    await expect(upload).rejects.toMatchObject({ code: 'unsupported' });
    await clock.settle();
    expect(agent.channels().map((channel) => channel.name)).toContain('Newer');
    expect(gateway.faults).toEqual([]);
  });

  test('LNK40: media bytes go where the gateway says', async () => {
    const put: unknown[] = [];
    const { agent } = await attached(
      { putBytes: async (...what) => void put.push(what) },
      {
        answer: (frame) =>
          frame.type === 'media.request'
            ? { type: 'media.grant', payload: { media_id: 'md_9', url: 'http://x/y', expires_at: 1 } }
            : undefined,
      },
    );
    const bytes = new TextEncoder().encode('abc');
    const media = await agent.lane().upload({ kind: 'file', mime: 'text/plain', bytes, filename: 'a.txt' });
    expect(media).toEqual({
      media_id: 'md_9',
      kind: 'file',
      mime: 'text/plain',
      size: 3,
      filename: 'a.txt',
      sha256: 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
    });
    expect(put).toEqual([['http://x/y', bytes, 'text/plain']]);
  });

  test('a request without an answer fails in the end; one that nobody waits for harms nobody', async () => {
    const { agent, clock, gateway } = await attached();
    gateway.net.blackhole();
    void agent.search('unheard').catch(() => {});
    const search = agent.search('x');
    const failed = expect(search).rejects.toMatchObject({ code: 'timeout' });
    gateway.refuse = 1006;
    await clock.advance(61_000);
    await failed;
    gateway.refuse = undefined;
    await clock.advance(31_000);
    expect(agent.online).toBe(true);
  });

  test('LNK41: deletions are acked only when they are done, and answered', async () => {
    let done: () => void = () => {};
    const { gateway, clock } = await attached({
      onDeleted: async ({ message_ids }) => {
        await new Promise<void>((resolve) => {
          done = resolve;
        });
        return { removed: message_ids.slice(0, 1), missing: message_ids.slice(1) };
      },
    });
    gateway.tell({ type: 'message.deleted', id: 'd1', payload: { message_ids: ['a', 'b'] } });
    const turn_id = gateway.startTurn('meanwhile');
    await clock.settle();
    expect(gateway.unacked).toBe(2);
    expect(gateway.turns.get(turn_id)!.outcome).toBe('completed');
    done();
    await clock.settle();
    expect(gateway.unacked).toBe(0);
    expect(gateway.passing.find((frame) => frame.type === 'ack' && frame.id === 'd1')?.payload).toEqual({ removed: ['a'], missing: ['b'] });
  });
});

describe('the link', () => {
  test('comes back after a cut, faster and slower with the number of tries, at most 30 s', async () => {
    const { gateway, clock, agent, statuses } = await attached();
    gateway.refuse = 1006;
    gateway.net.cut();
    await clock.settle();
    const waits: number[] = [];
    for (let tries = gateway.net.dials; waits.length < 10; ) {
      let waited = 0;
      while (gateway.net.dials === tries) {
        const next = clock.untilNext()!;
        waited += next;
        await clock.advance(next);
      }
      tries = gateway.net.dials;
      waits.push(waited);
    }
    waits.forEach((wait, i) => {
      const most = Math.min(30_000, 250 * 2 ** i);
      expect(wait).toBeGreaterThanOrEqual(most / 2);
      expect(wait).toBeLessThanOrEqual(most);
    });
    gateway.refuse = undefined;
    await clock.advance(30_000);
    expect(agent.online).toBe(true);
    expect(statuses.map((status) => status.state)).toEqual(['online', 'offline', 'online']);
  });

  test('1012 brings it back at once', async () => {
    const { gateway, clock, agent } = await attached();
    gateway.close(1012);
    await clock.settle();
    expect(gateway.hellos).toHaveLength(2);
    expect(agent.online).toBe(true);
  });

  test.each([
    [4401, 'auth'],
    [4403, 'revoked'],
    [4409, 'replaced'],
  ] as const)('%i ends it: %s', async (code, reason) => {
    const { gateway, clock, agent } = await attached();
    gateway.close(code);
    await clock.settle();
    expect(await agent.stopped).toMatchObject({ reason, code });
    await clock.advance(60_000);
    expect(gateway.hellos).toHaveLength(1);
    expect(await agent.stop()).toMatchObject({ reason });
  });

  test('a refused first dial ends it as well', async () => {
    const { gateway, clock, agent } = await attached({}, {});
    gateway.refuse = 4401;
    gateway.net.cut();
    await clock.advance(1_000);
    expect(await agent.stopped).toMatchObject({ reason: 'auth' });
  });

  test('a dead line is noticed by its silence, and nothing is lost', async () => {
    const { gateway, clock } = await attached({}, { heartbeat_ms: 10_000 });
    gateway.net.blackhole();
    const turn_id = gateway.startTurn('hi');
    await clock.advance(30_000);
    expect(gateway.hellos.length).toBe(1);
    await clock.advance(1_500);
    expect(gateway.hellos.length).toBe(2);
    expect(gateway.turns.get(turn_id)!.outcome).toBe('completed');
  });

  test('a gateway that never says hello.ack is left', async () => {
    const { gateway, clock } = await attached();
    gateway.net.mute = true;
    gateway.net.cut();
    await clock.advance(1_000);
    expect(gateway.net.dials).toBe(2);
    await clock.advance(15_000);
    expect(gateway.net.dials).toBe(3);
    gateway.net.mute = false;
  });

  test('LNK37: drain: a second link is up before the first is closed, and the turn streams on', async () => {
    const held_ = held();
    const { gateway, clock, agent, statuses } = await attached({ onTurn: held_.onTurn });
    const turn_id = gateway.startTurn('hi');
    await clock.settle();
    held_.turn.write('before ');
    await clock.settle();
    gateway.say({ type: 'drain', payload: { deadline_ms: 10_000 } });
    await clock.settle();
    expect(gateway.hellos).toHaveLength(2);
    expect(gateway.hellos[1]).toMatchObject({ open_turns: [turn_id], boot_id: gateway.hellos[0]!.boot_id });
    held_.turn.write('after');
    await clock.settle();
    held_.letGo();
    await clock.settle();
    expect([...gateway.turns.get(turn_id)!.messages.values()][0]!.text).toBe('before after');
    expect(agent.online).toBe(true);
    expect(statuses.some((status) => status.state === 'ended')).toBe(false);
  });

  test('drain when the second link cannot be had: the first serves on until it closes', async () => {
    const { gateway, clock, agent } = await attached();
    gateway.refuse = 1013;
    gateway.say({ type: 'drain', payload: { deadline_ms: 10_000 } });
    await clock.advance(3_000);
    const turn_id = gateway.startTurn('hi');
    await clock.settle();
    expect(gateway.turns.get(turn_id)!.outcome).toBe('completed');
    gateway.refuse = undefined;
    gateway.close(1012);
    await clock.advance(5_000);
    expect(agent.online).toBe(true);
  });

  test('LNK5 LNK7: a frame that was lost behind the gateway is asked for by a new link', async () => {
    const { gateway, clock } = await attached();
    gateway.loseNext();
    const lost = gateway.startTurn('lost');
    const next = gateway.startTurn('next');
    await clock.advance(1_000);
    expect([lost, next].map((id) => gateway.turns.get(id)!.outcome)).toEqual(['completed', 'completed']);
    expect(gateway.hellos).toHaveLength(2);
  });

  test('a frame that was taken back leaves a gap that is believed the second time', async () => {
    const { gateway, clock } = await attached();
    gateway.net.blackhole();
    const gone = gateway.tell({ type: 'picker.closed', payload: { picker_id: 'x', reason: 'expired' } });
    const turn_id = gateway.startTurn('hi');
    gateway.withdraw(gone);
    await clock.advance(120_000);
    expect(gateway.turns.get(turn_id)!.outcome).toBe('completed');
    expect(gateway.unacked).toBe(0);
  });

  test.each([
    ['that was never linked before', 0],
    ['that has had other links since', 7],
  ])('a gateway that has forgotten everything, and %s, is given a new installation', async (_, links) => {
    const held_ = held();
    const { gateway, clock, agent } = await attached({ onTurn: held_.onTurn });
    gateway.startTurn('old');
    await clock.settle();
    const old = held_.turn;
    old.write('for the old gateway only');
    await clock.settle();
    gateway.net.cut();
    await clock.settle();
    agent.lane('android:chan_1').say('said while away, to nobody else');
    gateway.forget(links);
    await clock.advance(5_000);
    expect(old.signal.aborted).toBe(true);
    expect(new Set(gateway.hellos.map((hello) => hello.install_id)).size).toBe(2);
    expect(gateway.hellos.at(-1)).toMatchObject({ last_seq: 0, open_turns: [] });
    expect(gateway.processed).toMatchObject([{ type: 'commands.catalog', seq: 1 }]);
    const turn_id = gateway.startTurn('new', { turn_id: 'tn_new' });
    await clock.settle();
    held_.letGo('answer');
    await clock.settle();
    expect(gateway.turns.get(turn_id)).toMatchObject({ outcome: 'completed' });
    expect(JSON.stringify(gateway.processed)).not.toContain('old gateway');
    expect(JSON.stringify(gateway.processed)).not.toContain('while away');
    expect(agent.unacked).toBe(0);
  });

  test('deltas wait while the network takes no more, and go as one', async () => {
    const held_ = held();
    const { gateway, clock } = await attached({ onTurn: held_.onTurn });
    gateway.startTurn('hi');
    await clock.settle();
    gateway.net.buffered = 10_000_000;
    for (let i = 0; i < 50; i++) {
      held_.turn.write(`${i} `);
      await clock.advance(10);
    }
    expect(gateway.passing.filter((frame) => frame.type === 'message.delta')).toHaveLength(0);
    gateway.net.buffered = 0;
    await clock.advance(200);
    expect(gateway.passing.filter((frame) => frame.type === 'message.delta')).toHaveLength(1);
    held_.letGo();
  });

  test('no more is sent unacked than the gateway should have to hold; what it asks meanwhile is answered', async () => {
    const held_ = held();
    let patient = true;
    const { gateway, clock, agent } = await attached(
      { onTurn: held_.onTurn },
      { ackEvery: () => (patient ? Number.POSITIVE_INFINITY : 1) },
    );
    const turn_id = gateway.startTurn('hi');
    await clock.settle();
    held_.turn.onSteer(() => true);
    held_.turn.write('a');
    for (let i = 0; i < 3_000; i++) held_.turn.commentary(`${i} `.padEnd(4_000, '.'));
    held_.turn.write('b');
    await clock.advance(1_000);
    const sent = gateway.processed.length;
    expect(sent).toBeGreaterThan(900);
    expect(sent).toBeLessThan(1_200);
    const seq = gateway.steer(turn_id, 'meanwhile');
    await clock.settle();
    expect(gateway.unacked).toBe(0);
    patient = false;
    gateway.net.cut();
    await clock.advance(5_000);
    expect(gateway.steered(seq)).toBe(true);
    expect(agent.unacked).toBe(0);
    expect(gateway.processed.filter((frame) => frame.type === 'commentary')).toHaveLength(3_000);
    expect([...gateway.turns.get(turn_id)!.messages.values()][0]!.text).toBe('ab');
    held_.letGo();
  });

  test('LNK11: garbage and unknown frames are passed over, numbered ones acked', async () => {
    const { gateway, clock } = await attached();
    gateway.tell({ type: 'some.news' as never, payload: {} });
    gateway.say({ type: 'error', payload: { code: 'internal', message: 'odd' } });
    gateway.tell({ type: 'turn.start', payload: { broken: true } });
    const turn_id = gateway.startTurn('hi');
    await clock.settle();
    expect(gateway.unacked).toBe(0);
    expect(gateway.turns.get(turn_id)!.outcome).toBe('completed');
  });

  test('a frame over the limit is refused where it is said, and nothing else suffers', async () => {
    const { gateway, clock } = await attached({
      onTurn(turn) {
        expect(() => turn.say('big', { reasoning: 'x'.repeat(2_000_000) })).toThrow(RangeError);
        return 'fine';
      },
    });
    const turn_id = gateway.startTurn('hi');
    await clock.settle();
    expect(gateway.turns.get(turn_id)!.outcome).toBe('completed');
  });
});

describe('stopping the agent', () => {
  test('ends running turns as interrupted, leaves new ones, and waits for the acks', async () => {
    const held_ = held();
    const { gateway, clock, agent } = await attached({ onTurn: held_.onTurn });
    const turn_id = gateway.startTurn('hi');
    await clock.settle();
    held_.turn.write('so far');
    const stopped = agent.stop();
    const late = gateway.startTurn('late', { chat_id: 'android:chan_9' });
    await clock.settle();
    held_.letGo();
    await clock.settle();
    expect(await stopped).toMatchObject({ reason: 'stopped' });
    expect(gateway.turns.get(turn_id)).toMatchObject({ outcome: 'interrupted' });
    expect(gateway.turns.get(late)).toMatchObject({ accepted: false });
    expect(gateway.unacked).toBe(1);
    expect(gateway.linked).toBe(false);
  });

  test('finish_ms lets a turn come to its own end', async () => {
    const held_ = held();
    const { gateway, clock, agent } = await attached({ onTurn: held_.onTurn });
    const turn_id = gateway.startTurn('hi');
    await clock.settle();
    const stopped = agent.stop({ finish_ms: 60_000 });
    await clock.advance(5_000);
    expect(held_.turn.signal.aborted).toBe(false);
    held_.letGo('the end');
    await clock.settle();
    await stopped;
    expect(gateway.turns.get(turn_id)!.outcome).toBe('completed');
  });
});
