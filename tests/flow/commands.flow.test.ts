import { onStage, type Payload } from '@iris/testkit';
import { expect, test } from '@jest/globals';

const commands = [
  { name: '/new', description: 'Start anew', args_hint: '[name]', category: 'Session', aliases: ['/reset'] },
  { name: '/model', description: 'Switch model', args_hint: '<provider/model>', category: 'Configuration', aliases: [] },
  { name: 'memory', description: 'Without a slash', aliases: ['mem'] },
];
const shown = [
  commands[0]!,
  commands[1]!,
  { name: '/memory', description: 'Without a slash', args_hint: '', category: '', aliases: ['/mem'] },
];
const names = (payload: Payload) => (payload.matches as { name: string }[]).map(({ name }) => name);

test('CMD1 CMD2: every command of the agent, with slashes, also while it is away', () =>
  onStage(async ({ world, agent, a, b }) => {
    expect((await a.request('commands.catalog')).payload).toEqual({ commands: [] });
    agent.say('commands.catalog', { commands, rev: 1 });
    await world.advance(100);
    for (const device of [a, b]) {
      const answer = await device.request('commands.catalog');
      expect(answer).toMatchObject({ type: 'commands.catalog', id: expect.any(Number) });
      expect(answer.payload).toEqual({ commands: shown });
    }
    agent.cut();
    await world.advance(60_000);
    expect((await b.request('commands.catalog')).payload).toEqual({ commands: shown });
    for (const session of world.sessions) session.kill();
    await world.startSession();
    expect((await b.request('commands.catalog', {}, { chat_id: 'android:default' })).payload).toEqual({ commands: shown });
    await agent.connect();
    agent.say('commands.catalog', { commands: commands.slice(0, 1), rev: 2 });
    await world.advance(100);
    expect((await a.request('commands.catalog')).payload).toEqual({ commands: shown.slice(0, 1) });
  }));

test('CMD3: what begins with the prefix, by its name or another of its names', () =>
  onStage(async ({ world, agent, a }) => {
    agent.say('commands.catalog', { commands });
    await world.advance(100);
    for (const [prefix, expected] of [
      ['/m', ['/model', '/memory']],
      ['/mod', ['/model']],
      ['/MOD', ['/model']],
      ['mem', ['/memory']],
      ['/reset', ['/new']],
      ['/', ['/new', '/model', '/memory']],
      ['', ['/new', '/model', '/memory']],
      ['/model qwen', []],
      ['.*', []],
      ['\ud800', []],
    ] as const) {
      const answer = await a.request('commands.complete', { prefix });
      expect(answer).toMatchObject({ type: 'commands.complete', payload: { prefix: prefix === '\ud800' ? '\ufffd' : prefix } });
      expect([prefix, names(answer.payload)]).toEqual([prefix, expected]);
    }
    for (const prefix of [7, undefined, 'x'.repeat(1_025)])
      expect(await a.request('commands.complete', prefix === undefined ? {} : { prefix: prefix as never })).toMatchObject({
        type: 'error',
        payload: { code: 'unsupported', message: expect.stringMatching(/^prefix/) },
      });
  }));

test('MSG13 CMD1: a command that the agent named without its slash is one all the same', () =>
  onStage(async ({ world, agent, a, b }) => {
    agent.say('commands.catalog', { commands });
    await world.advance(100);
    await a.send('question');
    const turn = await agent.turn();
    await a.send('/mem show');
    const command = await agent.turn();
    expect(command.offer.kind).toBe('command');
    command.end();
    turn.end();
    await b.next('agent.idle');
    await world.advance(100);
    expect(b.frames('agent.idle')).toHaveLength(1);
  }));

test('CMD1 HEL7: another tenant’s commands are its own', () =>
  onStage(async ({ world, agent, a }) => {
    agent.say('commands.catalog', { commands });
    await world.advance(100);
    const stranger = await (await world.tenant()).join('stranger');
    expect((await stranger.request('commands.catalog')).payload).toEqual({ commands: [] });
    expect((await a.request('commands.catalog')).payload.commands).toHaveLength(3);
  }));
