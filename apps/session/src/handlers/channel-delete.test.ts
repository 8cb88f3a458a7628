import type { Store } from '@iris/store';
import { describe, expect, test } from '@jest/globals';
import { rig, tenant } from '../testing/rig.js';

/** A session whose store takes a channel out only when it is let, and may not say that it has. */
async function stage() {
  let let_go = () => {};
  const gate = new Promise<void>((resolve) => {
    let_go = resolve;
  });
  let silent = false;
  const store = (inner: Store): Store => ({
    ...inner,
    channels: {
      ...inner.channels,
      async remove(...args) {
        await gate;
        const removed = await inner.channels.remove(...args);
        if (silent) await new Promise(() => {});
        return removed;
      },
    },
  });
  const made = await rig({ store });
  const phone = made.device('phone');
  await phone.hello();
  const { payload } = await phone.request('channel.create', { name: 'doomed' });
  const scope = { chat_id: (payload as unknown as { chat_id: string }).chat_id };
  await phone.send('canary', {}, scope);
  phone.setBase(4);
  made.edge.send([phone.make('channel.delete', {}, scope)]);
  await made.clock.settle();
  return {
    ...made,
    phone,
    scope,
    letGo: () => let_go(),
    beSilent: () => {
      silent = true;
    },
  };
}

describe('channel.delete', () => {
  test('ENV22 CHA7 CHA9 C117: nobody is told before the channel is out of the store', async () => {
    const { edge, clock, store, phone, scope, letGo } = await stage();
    expect(await store.channels.list(tenant)).toHaveLength(2);
    expect(phone.answersTo(4)).toEqual([]);
    expect(edge.frames('channel.deleted')).toEqual([]);
    letGo();
    await clock.settle();
    expect(await store.channels.list(tenant)).toHaveLength(1);
    expect(edge.frames('channel.deleted')).toMatchObject([{ payload: scope }]);
    expect(await phone.request('history', {}, scope)).toMatchObject({ type: 'error', payload: { code: 'not_found' } });
  });

  test('ENV24 CHA7: the instance dies when the channel is out of the store and nobody knows; another answers with the frame that stands', async () => {
    const { edge, clock, outbox, store, phone, scope, log, letGo, beSilent, kill, start } = await stage();
    beSilent();
    letGo();
    await clock.settle();
    expect(await store.channels.list(tenant)).toHaveLength(1);
    expect(phone.answersTo(4)).toEqual([]);
    kill(0);
    await start('s2');
    edge.use('s2');
    phone.again(4);
    await clock.settle();
    expect(phone.frameTo(4)).toMatchObject({ type: 'channel.deleted', payload: scope });
    expect((await log()).filter(({ type }) => type === 'channel.deleted')).toHaveLength(1);
    expect([...(await outbox.values(tenant)).keys()].filter((name) => name.startsWith('gone:'))).toEqual([]);
    // Asked by another request, it is not there.
    expect(await phone.request('channel.delete', {}, scope)).toMatchObject({ type: 'error', payload: { code: 'not_found' } });
  });
});
