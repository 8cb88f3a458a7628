import { lane, onStage } from '@iris/testkit';
import { expect, test } from '@jest/globals';

test('RCP1: when the agent has accepted, to the sending connection only', () =>
  onStage(async ({ world, agent, a, b }) => {
    const { payload } = await a.send('question');
    const turn = await agent.turn({ accept: false });
    await world.advance(5_000);
    expect(a.frames('read.receipt')).toEqual([]);
    turn.accept();
    expect(await a.next('read.receipt')).toMatchObject({ ...lane, payload: { message_id: payload.message_id } });
    turn.end();
    await b.next('agent.idle');
    expect(b.frames('read.receipt')).toEqual([]);
    expect(a.frames('read.receipt')).toHaveLength(1);
  }));

test('RCP2: the sender has gone: it gets it on its next connection, once, through any edge', () =>
  onStage(
    async ({ world, agent, a }) => {
      const { payload } = await a.send('question');
      const turn = await agent.turn({ accept: false });
      a.cut();
      await world.advance(1_000);
      turn.accept();
      turn.end();
      await world.advance(1_000);
      await a.join(world.edges[1]!.links.dial('/ws'));
      expect(await a.next('read.receipt')).toMatchObject({ payload: { message_id: payload.message_id } });
      a.cut();
      await a.join();
      await world.advance(1_000);
      expect(a.frames('read.receipt')).toHaveLength(1);
    },
    { unchecked: true },
  ));

test('RCP1 MSG12: messages that wait get theirs one by one', () =>
  onStage(async ({ agent, a, b }) => {
    const ids = [];
    for (const text of ['one', 'two', 'three']) ids.push((await a.send(text)).payload.message_id);
    for (let i = 0; i < 3; i++) {
      const turn = await agent.turn();
      expect((await a.next('read.receipt')).payload.message_id).toBe(ids[i]);
      expect(a.frames('read.receipt')).toHaveLength(i + 1);
      turn.end();
      await b.next('agent.idle');
    }
  }));
