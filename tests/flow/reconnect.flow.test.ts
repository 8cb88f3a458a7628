import { type AnyFrame, lane, onStage, type TestDevice } from '@iris/testkit';
import { describe, expect, test } from '@jest/globals';

describe('C08 C06: a device whose network takes everything and gives nothing', () => {
  test.each([0, 1])(
    'KEE4: counts as away within 25 s, is pushed within 5 s more, and gets all on a new connection through edge %i',
    (edge) =>
      onStage(
        async ({ world, tenant, agent, a, b }) => {
          await b.sync();
          await b.request('fcm.register', { fcm_token: 'token-b' });
          await world.advance(6_000);
          const isOnline = async () =>
            (await world.backbone.outbox.devices(tenant.tenant_id)).some(
              ({ device_id, edge_id }) => device_id === 'tablet' && edge_id !== undefined,
            );
          expect(await isOnline()).toBe(true);
          const began = world.time.now();
          b.cut({ silent: true });
          for (let n = 0; n < 30; n++) {
            agent.say('message', { message_id: `own ${n}`, role: 'cron', text: `into the dark ${n}` }, lane);
            await world.advance(500);
          }
          await world.advance(25_000 - (world.time.now() - began));
          expect(await isOnline()).toBe(false);
          await world.advance(5_000);
          expect(world.fakes.fcm.accepted.map(({ token }) => token)).toContain('token-b');
          await b.join(world.edges[edge]!.links.dial('/ws'));
          await b.sync();
          const texts = b.frames('message').map(({ payload }) => payload.text);
          expect(texts).toEqual(Array.from({ length: 30 }, (_, n) => `into the dark ${n}`));
          expect(a.frames('message')).toHaveLength(30);
        },
        { push: true },
      ),
  );
});

describe('C14: a send while what carries it dies', () => {
  const moments = [0, 1, 2, 3, 4, 6, 8, 11, 15, 20, 30, 50, 100, 200];
  test.each(['edge', 'session'] as const)('ENV22 ENV24: %s killed at any moment after it: what was answered is in history, once', (which) =>
    onStage(
      async ({ world, a, b }) => {
        const faults = { ...world.backbone.faults, socket_ms: [1, 2], bus_ms: [1, 3], store_ms: [2, 5], outbox_ms: [1, 3] } as const;
        let answered = 0;
        let home = world.edges[0]!;
        for (const moment of moments) {
          world.backbone.faults = faults;
          const text = `${which} ${moment}`;
          const client_ref = `ref ${moment}`;
          let answer: AnyFrame | undefined;
          const sent = a.send(text, { ...lane, client_ref }).then(
            (frame) => {
              answer = frame;
            },
            () => {},
          );
          await world.advance(moment);
          const instances = world.sessions.filter((one) => one.alive);
          (which === 'edge' ? home : instances[moment % instances.length])!.kill();
          await (which === 'edge' ? world.startEdge() : world.startSession());
          await world.advance(which === 'edge' ? 100 : 12_000);
          if (answer?.type === 'message') answered++;
          // Whatever was seen, the app comes back and asks again with the same name.
          if (!a.connected) {
            home = world.edges.findLast((one) => one.alive)!;
            await a.join(home.links.dial('/ws'));
            await a.sync();
          }
          await sent;
          const again = await a.send(text, { ...lane, client_ref });
          expect(again.type).toBe('message');
          if (answer?.type === 'message') expect(again.payload.message_id).toBe(answer.payload.message_id);
          if (!b.connected) {
            await b.join(world.edges.filter((one) => one.alive)[0]!.links.dial('/ws'));
            await b.sync();
          }
          const rows = await b.historyAll(lane);
          expect(rows.filter((row) => row.text === text).map(({ message_id }) => message_id)).toEqual([again.payload.message_id]);
        }
        expect(answered).toBeGreaterThan(0);
        if (which === 'edge') expect(answered).toBeLessThan(moments.length);
      },
      { unchecked: true, agent: false, expected: ['*'] },
    ),
  );
});

describe('C20: what was made and taken back, of every kind', () => {
  /** Types of the frames about one object, as a device got them, repeats on later connections included. */
  const about = (device: TestDevice, of: (frame: AnyFrame) => boolean) =>
    device.frames((frame) => frame.type !== 'hello.ack' && frame.type !== 'channel.list' && of(frame)).map(({ type }) => type);

  test('ORD2 SYN6 CHA12: asked in one breath, it is made before it goes, or only goes: live, after a pause, by sync, and for who joins in between', () =>
    onStage(
      async ({ world, tenant, a, b }) => {
        const away = await tenant.join('away', { caps: { cursors: true } });
        const plain = await tenant.join('plain', { edge: 1 });
        for (const one of [away, plain]) one.cut();
        b.pause();
        // No answer is waited for: one socket, one order.
        const made = a.request('channel.create', { name: 'Short-lived' });
        const sent = a.send('short-lived message');
        const { chat_id } = (await made).payload;
        const { message_id } = (await sent).payload;
        const inside = a.request('channel.create', { name: 'Thread', kind: 'thread', parent_chat_id: chat_id! });
        const said = a.send('in the channel', { chat_id: chat_id! });
        const renamed = a.request('channel.rename', { name: 'Renamed' }, { chat_id: chat_id! });
        const removed = a.request('channel.delete', {}, { chat_id: chat_id! });
        const deleted = a.request('message.delete', { message_ids: [message_id!] }, lane);
        const joined = tenant.join('joins', { edge: 1 });
        const answers = await Promise.all([inside, said, renamed, removed, deleted]);
        expect(answers.map(({ type }) => type)).toEqual([
          'channel.created',
          'message',
          'channel.renamed',
          'channel.deleted',
          'message.deleted',
        ]);
        const late = await joined;
        b.resume();
        await world.advance(1_000);
        for (const one of [away, plain]) {
          await one.join();
          await one.sync();
        }
        await late.sync();
        const ofMessage = (frame: AnyFrame) =>
          frame.payload.message_id === message_id || frame.payload.message_ids?.includes(message_id!) === true;
        const ofChannel = (frame: AnyFrame) => (frame.chat_id ?? frame.payload.chat_id) === chat_id;
        for (const device of [a, b, away, plain, late]) {
          const message = about(device, ofMessage);
          const channel = about(device, ofChannel);
          expect({ name: device.device_id, last: [message.at(-1), channel.at(-1)] }).toEqual({
            name: device.device_id,
            last: ['message.deleted', 'channel.deleted'],
          });
          expect(message.filter((type) => type === 'message.deleted')).toHaveLength(1);
          expect(channel.filter((type) => type === 'channel.deleted')).toHaveLength(1);
        }
        // Who was away is shown nothing of either.
        for (const device of [away, plain]) expect([...about(device, ofMessage), ...device.frames('message')]).toEqual(['message.deleted']);
        expect(await b.history({ chat_id: chat_id! })).toMatchObject({ type: 'error', payload: { code: 'not_found' } });
        expect((await b.history(lane)).payload.messages).toEqual([]);
        for (const device of [plain, late]) await device.close();
      },
      { agent: false },
    ));

  test('PIC10 PIC12 SYN6: a picker that was opened and closed while a device was away is not shown to it', () =>
    onStage(async ({ world, tenant, agent, a, b }) => {
      const away = await tenant.join('away');
      away.cut();
      await a.send('question');
      const turn = await agent.turn();
      const choices = [{ value: 'yes', label: 'Yes' }];
      turn.picker('choice', { title: 'Answered', choices });
      turn.picker('confirm', { title: 'Left open', choices });
      const { picker_id } = (await a.next('picker.choice')).payload;
      await a.next('picker.confirm');
      expect((await b.request('picker.select', { picker_id: picker_id!, value: 'yes' })).type).toBe('ack');
      turn.end();
      await a.next('agent.idle');
      await world.advance(100);
      await away.join();
      await away.sync();
      const open = new Set<string>();
      for (const { type, payload } of away.frames(({ type }) => type.startsWith('picker.')))
        if (type === 'picker.closed') open.delete(payload.picker_id!);
        else open.add(payload.picker_id!);
      expect([...open]).toEqual([]);
      for (const { type } of away.frames((frame) => frame.payload.picker_id === picker_id)) expect(type).toBe('picker.closed');
    }));
});
