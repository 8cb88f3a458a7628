import { onStage } from '@iris/testkit';
import { expect, test } from '@jest/globals';

test('LNK36: a turn of which nothing is heard for ten minutes: the operator is told once, devices still see busy, and it can go on', () =>
  onStage(
    async ({ world, tenant, agent, a }) => {
      const alerts = () => world.events.all.filter(({ event }) => event === 'session.turn_silent');
      await a.send('think hard');
      const turn = await agent.turn();
      await a.next('agent.busy');
      turn.start();
      for (let minute = 0; minute < 5; minute++) {
        await world.advance(60_000);
        turn.delta('.');
      }
      await world.advance(595_000);
      expect(alerts()).toEqual([]);
      await world.advance(10_000);
      expect(alerts()).toHaveLength(1);
      expect(alerts()[0]).toMatchObject({ level: 'warn' });
      await world.advance(300_000);
      expect(alerts()).toHaveLength(1);
      // Whoever joins now is told that it is at work; nothing was killed.
      const late = await tenant.join('desk', { edge: 1 });
      await late.next('agent.busy');
      expect([a.frames('agent.idle'), agent.received.all.filter(({ type }) => type === 'agent.stop')]).toEqual([[], []]);
      turn.delta(' done');
      turn.stop();
      turn.end();
      await a.next('agent.idle');
      expect(a.frames('message.stop')).toMatchObject([{ payload: { final_text: '..... done' } }]);
      await world.advance(1_000);
    },
    { sessions: 1, expected: ['session.turn_silent'] },
  ));
