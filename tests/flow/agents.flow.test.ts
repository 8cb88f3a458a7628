import { type Control, subjects } from '@iris/bus';
import type { AgentId, ChatId } from '@iris/protocol';
import { lane, makeAgent, onStage, type Stage, type TestAgent } from '@iris/testkit';
import { describe, expect, test } from '@jest/globals';

/** A second agent, attached, and a channel that is bound to it; `say` is what the admin API tells everyone once the store has it. */
async function second({ world, tenant, a, b }: Stage, options: { attached?: boolean } = {}) {
  const { tenant_id } = tenant;
  const { bus } = world.backbone.join('control', 'net');
  const say = async (order: Control) => {
    bus.publish(subjects.control, new TextEncoder().encode(JSON.stringify(order)));
    await world.advance(100);
  };
  const made = await makeAgent(world.store, tenant, 'second', { at: world.time.now() });
  const other = tenant.agent({ edge: 1, token: made.token, install_id: 'install of the second' });
  const { payload } = await a.request('channel.create', { name: 'Reports' });
  const there = { chat_id: payload.chat_id as ChatId };
  await b.next('channel.created');
  const bind = async (agent_id: AgentId | null) => {
    await world.store.channels.bind(tenant_id, there.chat_id, agent_id);
    await say({ kind: 'rerouted', tenant_id });
  };
  await bind(made.agent_id);
  if (options.attached !== false) await other.connect();
  const remove = async () => {
    const removed = await world.store.agents.remove(tenant_id, made.agent_id, world.time.now());
    if (removed === undefined || removed === 'default') throw new Error(`not removed: ${removed}`);
    for (const token_id of removed.token_ids) await say({ kind: 'revoked', tenant_id, token_id });
    await say({ kind: 'rerouted', tenant_id });
  };
  return { ...made, other, there, bind, say, remove };
}
const texts = (agent: TestAgent) => [...agent.turns.values()].map(({ text }) => text);

describe('LNK17: several agents of one tenant', () => {
  test('a channel’s turns go to the agent that it is bound to, its threads’ too, all others to the default one', () =>
    onStage(async (stage) => {
      const { agent, a } = stage;
      const { other, there } = await second(stage);
      await a.send('for the default one');
      await a.send('for the second', there);
      await a.send('in a thread of it', { ...there, auto_thread: true });
      const turns = [await agent.turn(), await other.turn(), await other.turn()];
      expect([texts(agent), texts(other).sort()]).toEqual([['for the default one'], ['for the second', 'in a thread of it']]);
      // Lanes of both run beside each other, and what each says is shown in its own.
      for (const turn of turns) {
        turn.message(`answer to ${turn.text}`);
        turn.end();
      }
      for (const _ of turns) await a.next('agent.idle');
      const answers = a.frames('message').filter(({ payload }) => payload.role === 'assistant');
      expect(answers.map(({ chat_id, payload }) => [chat_id, payload.text]).sort()).toEqual(
        [
          [there.chat_id, 'answer to for the second'],
          [there.chat_id, 'answer to in a thread of it'],
          ['android:default', 'answer to for the default one'],
        ].sort(),
      );
    }));

  test('stop, steer and a picker’s answer reach the agent whose turn it is, by any edge, and no other', () =>
    onStage(
      async (stage) => {
        const { agent, a, b } = stage;
        const { other, there } = await second(stage);
        await a.send('work', there);
        const turn = await other.turn();
        const own_id = turn.picker('choice', {
          title: 'Which?',
          choices: [
            { value: 'x', label: 'X' },
            { value: 'y', label: 'Y' },
          ],
        });
        const picker = await b.next('picker.choice');
        await b.request('picker.select', { picker_id: picker.payload.picker_id!, value: 'y' }, there);
        expect((await other.next('picker.select')).payload).toEqual({ picker_id: own_id, value: 'y' });
        await b.request('agent.steer', { text: 'faster' }, there);
        expect((await other.next('agent.steer')).payload).toMatchObject({ text: 'faster' });
        // The same words where nothing of it runs do nothing to it.
        await b.request('agent.stop', {}, lane);
        await b.request('agent.stop', {}, there);
        expect(await other.next('agent.stop')).toMatchObject({ turn_id: turn.turn_id });
        turn.end('cancelled');
        await a.next('agent.idle');
        for (const type of ['picker.select', 'agent.steer', 'agent.stop', 'turn.start'])
          expect([type, agent.received.all.filter((frame) => frame.type === type)]).toEqual([type, []]);
      },
      { unchecked: true },
    ));

  test('an agent can say nothing in another one’s turn', () =>
    onStage(async (stage) => {
      const { world, agent, a } = stage;
      const { other, there } = await second(stage);
      await a.send('work', there);
      const turn = await other.turn();
      for (const type of ['message.start', 'turn.end', 'turn.accepted', 'agent.busy'])
        agent.say(type, { message_id: 'x', role: 'assistant', outcome: 'failed', reason: 'tool' }, { ...there, turn_id: turn.turn_id });
      await world.advance(1_000);
      expect(a.frames(['message.start', 'agent.idle'])).toEqual([]);
      turn.end();
      await a.next('agent.idle');
    }));

  test('each channel offers its own agent’s commands, a name that both have is its own agent’s; without a channel those of all', () =>
    onStage(async (stage) => {
      const { world, agent, a } = stage;
      const { other, there } = await second(stage);
      const entry = (name: string) => ({ name, description: `of ${name}` });
      agent.say('commands.catalog', { commands: [entry('/new'), entry('/model')] });
      other.say('commands.catalog', { commands: [entry('/new'), entry('/deploy')] });
      await world.advance(500);
      const offered = async (scope?: object) =>
        ((await a.request('commands.catalog', {}, scope)).payload.commands as { name: string }[]).map(({ name }) => name);
      expect(await offered(lane)).toEqual(['/new', '/model']);
      expect(await offered(there)).toEqual(['/new', '/deploy']);
      expect(await offered()).toEqual(['/new', '/model', '/deploy']);
      const matches = (await a.request('commands.complete', { prefix: '/d' }, lane)).payload.matches;
      expect(matches).toEqual([]);
      expect((await a.request('commands.catalog', {}, { chat_id: 'android:chan_99' })).payload.code).toBe('not_found');
      // A command of the second beside its own running turn; in the default one's lane the same word is a message like any other.
      await a.send('work', there);
      const running = await other.turn();
      await a.send('/deploy', there);
      expect((await other.turn()).offer.kind).toBe('command');
      await a.send('/deploy', lane);
      expect((await agent.turn()).offer.kind).toBe('chat');
      for (const turn of [running, ...other.turns.values(), ...agent.turns.values()]) if (turn.state === 'accepted') turn.end();
      await world.advance(500);
    }));

  test('away is one agent’s matter: its channels wait and are told once, the others go on', () =>
    onStage(async (stage) => {
      const { world, agent, a } = stage;
      const { other, there } = await second(stage, { attached: false });
      await a.send('hello?', there);
      await a.send('hello', lane);
      const turn = await agent.turn();
      turn.end();
      await a.next('agent.idle');
      await world.advance(60_000);
      const notices = a.frames('message').filter(({ payload }) => payload.role === 'system');
      expect(notices.map(({ chat_id }) => chat_id)).toEqual([there.chat_id]);
      await other.connect();
      const late = await other.turn();
      expect(late.text).toBe('hello?');
      late.end();
      await a.next('agent.idle');
    }));
});

describe('LNK17: bindings change', () => {
  test('what runs goes on with the agent that has it, what waits goes to the new one', () =>
    onStage(async (stage) => {
      const { world, agent, a } = stage;
      const { other, there, bind } = await second(stage);
      await a.send('one', there);
      const running = await other.turn();
      await a.send('two', there);
      await bind(null);
      await world.advance(1_000);
      expect(texts(agent)).toEqual([]);
      running.message('done by the second');
      running.end();
      const next = await agent.turn();
      expect(next.text).toBe('two');
      next.end();
      await a.next((frame) => frame.type === 'agent.idle' && a.frames('agent.idle').length === 2);
      expect(texts(other)).toEqual(['one']);
    }));

  test('messages that wait for an agent that is away start at once with the one that the channel gets', () =>
    onStage(async (stage) => {
      const { agent, a } = stage;
      const { there, bind } = await second(stage, { attached: false });
      await a.send('one', there);
      await a.send('two', there);
      await bind(null);
      for (const text of ['one', 'two']) {
        const turn = await agent.turn();
        expect(turn.text).toBe(text);
        turn.end();
        await a.next('agent.idle');
      }
    }));

  test('an agent is removed: its link is closed and its token opens nothing; its running turn ends as interrupted, what it had not accepted is run once by the default one', () =>
    onStage(
      async (stage) => {
        const { world, tenant, agent, a } = stage;
        const { agent_id, token, other, there, remove } = await second(stage);
        const { payload } = await a.request('channel.create', { name: 'More' });
        const more = { chat_id: payload.chat_id as ChatId };
        await world.store.channels.bind(tenant.tenant_id, more.chat_id, agent_id);
        await world.advance(35_000);
        await a.send('begun', there);
        const begun = await other.turn();
        begun.start();
        begun.delta('half an ans');
        begun.picker('confirm', { title: 'Sure?', choices: [{ value: 'yes', label: 'Yes' }] });
        await a.next('message.update');
        await a.send('behind it', there);
        await a.send('not taken', more);
        await other.turn({ accept: false });
        await remove();
        expect((await other.closed()).code).toBe(4403);
        const idle = await a.next('agent.idle', { within_ms: 5_000 });
        expect(idle.chat_id).toBe(there.chat_id);
        expect(a.frames('message.stop')).toMatchObject([{ payload: { final_text: 'half an ans', interrupted: true } }]);
        expect(a.frames('picker.closed')).toHaveLength(1);
        for (let n = 0; n < 2; n++) (await agent.turn()).end();
        expect(texts(agent).sort()).toEqual(['behind it', 'not taken']);
        await world.advance(2_000);
        expect((await world.store.turns.open(tenant.tenant_id)).length).toBe(0);
        // Everything else of the tenant goes on: what tells all agents passes the removed one over.
        expect((await a.request('channel.rename', { name: 'Renamed' }, there)).type).toBe('channel.renamed');
        expect((await a.request('message.delete', { message_ids: ['m_none'] }, there)).type).toBe('message.deleted');
        const again = tenant.agent({ edge: 0, token, install_id: 'x' });
        expect(await again.connect()).toMatchObject({ type: 'error', payload: { code: 'auth' } });
      },
      { unchecked: true },
    ));
});
