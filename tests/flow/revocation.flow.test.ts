import { type Control, subjects } from '@iris/bus';
import { type DeviceId, makeToken, type TokenId } from '@iris/protocol';
import { tokenHash } from '@iris/store';
import { fcmError, lane, type Stage, type TestDevice } from '@iris/testkit';
import { describe, expect, test } from '@jest/globals';
import { away, onPushStage as push, turn } from './push-stage.js';

/** What an operator does, as the admin API does it: the store first, then everyone is told. */
const ends: readonly (readonly [string, (stage: Stage) => Promise<Control>])[] = [
  [
    'its token is revoked',
    async ({ world, tenant: { tenant_id } }) => {
      await world.store.tokens.revoke(tenant_id, 'own' as TokenId, world.time.now());
      return { kind: 'revoked', tenant_id, token_id: 'own' };
    },
  ],
  [
    'the device is revoked',
    async ({ world, tenant: { tenant_id } }) => {
      const device_id = 'lost' as DeviceId;
      await world.store.devices.revoke(tenant_id, device_id, world.time.now());
      return { kind: 'revoked', tenant_id, device_id };
    },
  ],
  [
    'the tenant is suspended',
    async ({ world, tenant: { tenant_id } }) => {
      await world.store.tenants.setState(tenant_id, 'suspended');
      return { kind: 'revoked', tenant_id };
    },
  ],
];

/** A device with a token of its own. */
async function withToken({ world, tenant }: Stage, name: string, edge: number): Promise<TestDevice> {
  const { tenant_id } = tenant;
  const token = makeToken('device', tenant_id, 'secret-of-own'.padEnd(32, '0'));
  const known = await world.store.tokens.find(tenant_id, tokenHash(token));
  const row = { tenant_id, token_id: 'own' as TokenId, kind: 'device', hash: tokenHash(token), device_id: null, agent_id: null } as const;
  if (known === undefined) await world.store.tokens.create({ ...row, created_at: world.time.now() });
  const device = tenant.device(name, { edge, token });
  expect((await device.join()).type).toBe('hello.ack');
  return device;
}
async function revoke(stage: Stage, by: (stage: Stage) => Promise<Control>): Promise<number> {
  const order = await by(stage);
  stage.world.backbone.join('control', 'net').bus.publish(subjects.control, new TextEncoder().encode(JSON.stringify(order)));
  return stage.world.time.now();
}

describe.each([0, 1])('C133 HEL15: on edge %s', (edge) => {
  test.each(ends)('%s: within a second no frame, no part of an upload, and its socket is closed', (_, by) =>
    push(
      async (stage) => {
        const { world, a, agent } = stage;
        const lost = await withToken(stage, 'lost', edge);
        await a.send('tell me');
        const running = await agent.turn();
        running.start();
        lost.say('media.upload.start', { media_ref: 'mu_1', kind: 'file', mime: 'text/plain', size: 1_000_000, filename: 'a.txt' });
        const at = await revoke(stage, by);
        // It goes on as if nothing had happened.
        for (let i = 0; lost.connected && i < 100; i++) {
          running.update('x'.repeat(i + 1));
          lost.raw(new Uint8Array(1_000));
          await world.advance(50);
        }
        expect((await lost.closed()).code).toBe(4403);
        expect(world.time.now() - at).toBeLessThan(1_000);
        const heard = lost.received.all.length;
        running.end();
        await world.advance(30_000);
        expect(lost.received.all).toHaveLength(heard);
        // What had come of the file is no file.
        const file = await world.store.media.byRef(stage.tenant.tenant_id, 'lost' as DeviceId, 'mu_1');
        expect(['uploaded', 'attached']).not.toContain(file?.state);
        expect(await world.store.media.storedBytes(stage.tenant.tenant_id)).toBeLessThanOrEqual(1_000_000);
        expect(await lost.join()).toMatchObject({ type: 'error', payload: { code: 'auth' } });
      },
      { unchecked: true, expected: ['*'] },
    ),
  );
});

describe('C133 HEL15 PSH7: no push follows', () => {
  test.each(ends)('%s: neither for what comes then, nor what is decided, nor what waits for its next try', (_, by) =>
    push(
      async (stage) => {
        const { world, agent } = stage;
        const lost = await withToken(stage, 'lost', 0);
        await lost.request('fcm.register', { fcm_token: 'token-lost' });
        lost.cut();
        await away(stage);
        // One that its provider refused waits; of one the delay has only begun.
        world.fakes.fcm.set('token-lost', { answer: fcmError(503, 'UNAVAILABLE'), times: 1 });
        await turn(stage, 'one', 'refused once');
        await world.advance(1_300);
        await turn(stage, 'two', 'not looked at yet');
        await revoke(stage, by);
        const asked = world.fakes.fcm.asked.filter(({ token }) => token === 'token-lost').length;
        await world.advance(1_000);
        agent.say('message', { message_id: 'c1', role: 'cron', text: 'later' }, lane);
        await world.advance(600_000);
        expect(world.fakes.fcm.asked.filter(({ token }) => token === 'token-lost')).toHaveLength(asked);
        expect(world.fakes.fcm.accepted.filter(({ token }) => token === 'token-lost')).toEqual([]);
      },
      { unchecked: true, expected: ['*'] },
    ),
  );

  test('its token is revoked: a device of another token is pushed as before', () =>
    push(async (stage) => {
      const { world } = stage;
      const lost = await withToken(stage, 'lost', 0);
      lost.cut();
      await away(stage);
      await revoke(stage, ends[0]![1]);
      await turn(stage, 'one', 'for who stays');
      await world.advance(10_000);
      expect(world.fakes.fcm.accepted.map(({ token }) => token)).toEqual(['token-b']);
    }));
});
