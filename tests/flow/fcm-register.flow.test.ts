import { onStage } from '@iris/testkit';
import { expect, test } from '@jest/globals';

const ok = { type: 'ack', payload: { ok: true } };

test('PSH1: the token or topic is stored, in place of the last; what is not named stays; empty takes it away', () =>
  onStage(async ({ world, tenant, a, b }) => {
    const stored = async (device = 'phone') => {
      const rows = await world.store.pushTargets.list(tenant.tenant_id, device as never);
      return ['fcm', 'ntfy'].map((kind) => rows.find((row) => row.kind === kind)?.address ?? null);
    };
    expect(await a.request('fcm.register', { fcm_token: 'token-1' })).toMatchObject(ok);
    expect(await stored()).toEqual(['token-1', null]);
    await a.request('fcm.register', { ntfy_topic: 'topic-1' });
    expect(await stored()).toEqual(['token-1', 'topic-1']);
    await a.request('fcm.register', { fcm_token: 'token-2', ntfy_topic: 'topic-2' });
    expect(await stored()).toEqual(['token-2', 'topic-2']);
    await a.request('fcm.register', { fcm_token: '' });
    expect(await stored()).toEqual([null, 'topic-2']);
    expect(await stored('tablet')).toEqual([null, null]);
    // PSH5: a token is of the device that named it last.
    await a.request('fcm.register', { fcm_token: 'shared' });
    await b.request('fcm.register', { fcm_token: 'shared' });
    expect([await stored(), await stored('tablet')]).toEqual([
      [null, 'topic-2'],
      ['shared', null],
    ]);
    a.cut();
    await a.join();
    expect(await stored()).toEqual([null, 'topic-2']);
    expect(tenant.log).toEqual([]);
  }));

test('PSH1 ENV20 ENV9: without an id nothing answers; what is too long or no text is refused by name', () =>
  onStage(async ({ world, tenant, a }) => {
    a.say('fcm.register', { fcm_token: 'quiet' });
    await world.advance(100);
    expect(a.frames('ack')).toEqual([]);
    expect(await world.store.pushTargets.list(tenant.tenant_id, 'phone' as never)).toMatchObject([{ kind: 'fcm', address: 'quiet' }]);
    for (const [payload, field] of [
      [{ fcm_token: 'x'.repeat(4_097) }, 'fcm_token'],
      [{ ntfy_topic: 'x'.repeat(257) }, 'ntfy_topic'],
      [{ fcm_token: 7 }, 'fcm_token'],
    ] as const)
      expect(await a.request('fcm.register', payload as never)).toMatchObject({
        type: 'error',
        payload: { code: 'unsupported', message: expect.stringMatching(new RegExp(`^${field}`)) },
      });
  }));

test('PSH1 HEL4: hello carries the same', () =>
  onStage(async ({ world, tenant }) => {
    const device = tenant.device('watch');
    await device.connect();
    await device.hello({ fcm_token: 'by hello', ntfy_topic: 'topic' });
    const targets = await world.store.pushTargets.list(tenant.tenant_id, 'watch' as never);
    expect(targets.map(({ kind, address }) => [kind, address]).sort()).toEqual([
      ['fcm', 'by hello'],
      ['ntfy', 'topic'],
    ]);
  }));
