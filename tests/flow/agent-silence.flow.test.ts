import { ownerOf } from '@iris/bus';
import type { SessionId } from '@iris/protocol';
import { onStage, stayAttached } from '@iris/testkit';
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

test('LNK36: the instance dies meanwhile: the next one goes on counting, and tells the operator once', () =>
  onStage(
    async ({ world, tenant, agent, a }) => {
      const alerts = () => world.events.all.filter(({ event }) => event === 'session.turn_silent');
      const killOwner = async () => {
        const { tenant_id } = tenant;
        const live = world.sessions.filter(({ alive }) => alive);
        const owner = ownerOf(tenant_id, new Set(live.map(({ name }) => name as SessionId)));
        live.find(({ name }) => name === owner)!.kill();
        await world.startSession();
      };
      stayAttached({ world, tenant, agent });
      await a.send('think hard');
      const turn = await agent.turn();
      await a.next('agent.busy');
      await world.advance(420_000);
      await killOwner();
      await world.advance(170_000);
      expect(alerts()).toEqual([]);
      await world.advance(15_000);
      expect(alerts()).toHaveLength(1);
      await killOwner();
      await world.advance(300_000);
      expect(alerts()).toHaveLength(1);
      turn.start();
      turn.delta('done');
      turn.stop();
      turn.end();
      await a.next('agent.idle');
      await world.settle();
      expect(await world.backbone.outbox.values(tenant.tenant_id)).toEqual(new Map());
    },
    { expected: ['session.turn_silent'] },
  ));
