import { fcmError, lane, type Stage } from '@iris/testkit';
import { describe, expect, test } from '@jest/globals';
import { away, finalsOf, ledgerOf, onPushStage as push, turn } from './push-stage.js';

const finalOf = (stage: Stage) => finalsOf(stage).at(-1)!.cursor;

describe('who is pushed', () => {
  test('PSH2 PSH3 C30: a device that is away gets one push of a final, one that is here gets none, and the ledger says so', () =>
    push(async (stage) => {
      await away(stage);
      const { world, tenant } = stage;
      await turn(stage, 'hi', 'the answer');
      await world.advance(60_000);
      const { accepted } = world.fakes.fcm;
      const cursor = finalOf(stage);
      expect(accepted).toMatchObject([
        {
          token: 'token-b',
          data: { type: 'push', cursor: String(cursor), class: 'reply', chat_id: lane.chat_id, title: 'Default', body: 'the answer' },
          android: { priority: 'HIGH' },
        },
      ]);
      expect(await ledgerOf(stage, 'tablet')).toMatchObject([{ cursor, state: 'sent', provider: 'fcm', answer: '200', attempts: 1 }]);
      expect(await ledgerOf(stage, 'phone')).toMatchObject([{ cursor, state: 'skipped', why: 'confirmed' }]);
      expect((await world.store.devices.get(tenant.tenant_id, 'tablet' as never))?.last_pushed_cursor).toBe(cursor);
    }));

  test('PSH4 HEL20: last_pushed_cursor is told in hello.ack and is the cursor of the push', () =>
    push(async (stage) => {
      await away(stage);
      await turn(stage, 'hi', 'the answer');
      await stage.world.advance(5_000);
      const ack = await stage.b.join();
      expect(ack.payload.last_pushed_cursor).toBe(finalOf(stage));
      expect(ack.payload.server_caps).toMatchObject({ push: 'fcm' });
      await stage.b.sync();
    }));

  test('PSH6: a half-open device is pushed once it has had its time to confirm', () =>
    push(async (stage) => {
      const { world, b } = stage;
      await b.request('fcm.register', { fcm_token: 'token-b' });
      b.autoPong(false);
      const began = world.time.now();
      await turn(stage, 'hi', 'the answer');
      await world.advance(30_000);
      const { accepted } = world.fakes.fcm;
      expect(accepted).toHaveLength(1);
      expect(accepted[0]!.at - began).toBeGreaterThan(7_000);
      expect(accepted[0]!.at - began).toBeLessThan(12_000);
      b.cut();
    }));
});

describe('providers', () => {
  test('C80 PSH14: UNREGISTERED takes the token away at once, and the topic is used', () =>
    push(async (stage) => {
      const { world, tenant, b } = stage;
      await b.request('fcm.register', { ntfy_topic: 'topic-b' });
      await away(stage);
      world.fakes.fcm.unregister('token-b');
      await turn(stage, 'hi', 'one');
      await world.advance(10_000);
      await turn(stage, 'again', 'two');
      await world.advance(10_000);
      expect(world.fakes.fcm.asked).toMatchObject([{ token: 'token-b', status: 404 }]);
      expect((await world.store.pushTargets.list(tenant.tenant_id)).map(({ kind }) => kind)).toEqual(['ntfy']);
      expect(world.fakes.ntfy.published.map(({ topic, message }) => [topic, message])).toEqual([
        ['topic-b', 'one'],
        ['topic-b', 'two'],
      ]);
    }));

  test('C86 PSH15: 429 with Retry-After for one, 5xx for another: the third is pushed within 2 s, nobody before its time', () =>
    push(async (stage) => {
      const { world, tenant } = stage;
      await away(stage);
      for (const name of ['limited', 'broken']) {
        const device = await tenant.join(name);
        await device.request('fcm.register', { fcm_token: `token-${name}` });
        device.cut();
      }
      world.fakes.fcm.set('token-limited', { answer: fcmError(429, 'QUOTA_EXCEEDED', { 'retry-after': '60' }), times: 1 });
      world.fakes.fcm.set('token-broken', { answer: fcmError(503, 'UNAVAILABLE') });
      await world.advance(3_000);
      await turn(stage, 'hi', 'one');
      const began = stage.tenant.log.find(({ frame }) => frame.payload.role === 'assistant')!.at!;
      await world.advance(400_000);
      const at = (token: string) => world.fakes.fcm.asked.filter((one) => one.token === token).map((one) => one.at - began);
      expect(at('token-b')[0]).toBeLessThan(2_000);
      expect(at('token-limited')).toHaveLength(2);
      expect(at('token-limited')[1]! - at('token-limited')[0]!).toBeGreaterThanOrEqual(60_000);
      expect(at('token-broken')).toHaveLength(8);
      expect(await ledgerOf(stage, 'broken')).toMatchObject([
        { state: 'failed', why: 'tried often enough', answer: '503 UNAVAILABLE', attempts: 8 },
      ]);
    }));
});
