import type { PushContent } from '@iris/store';
import { type AnyFrame, fcmError, lane, receiver, type Stage } from '@iris/testkit';
import { describe, expect, test } from '@jest/globals';
import { answer_url, away, finalsOf, ledgerOf, onPushStage as push, turn } from './push-stage.js';

const choices = [
  { value: 'yes', label: 'Allow' },
  { value: 'no', label: 'Deny' },
];
const data = ({ world }: Stage) => world.fakes.fcm.accepted.map((one) => one.data);
const whys = async (stage: Stage, device = 'tablet') => (await ledgerOf(stage, device)).map(({ state, why }) => [state, why]);

/** A turn that asks and waits. */
async function ask(
  { a, agent }: Stage,
  kind = 'approval',
  more: Record<string, unknown> = { choices, title: 'Allow?', command: 'rm -rf x' },
) {
  await a.send('do it');
  const running = await agent.turn();
  running.picker(kind, more);
  const shown = await a.next(`picker.${kind}`);
  return { running, picker_id: shown.payload.picker_id!, shown };
}

describe('PSH2: what is worth a push', () => {
  test('PSH2 C84: finals, cron, pickers, notifications and failed turns; never typing, tools, updates, receipts or a person’s own', () =>
    push(
      async (stage) => {
        const { world, a, agent } = stage;
        await away(stage);
        await a.send('hello');
        const running = await agent.turn();
        running.typing();
        running.toolStart(1);
        running.toolEnd(1);
        running.commentary('let me see');
        running.start();
        running.update('half');
        await world.advance(5_000);
        expect(data(stage)).toEqual([]);
        running.stop({ final_text: 'whole' });
        await world.advance(2_000);
        running.end('failed', { error: 'no money left' });
        await a.next('agent.idle');
        await world.advance(2_000);
        agent.say('message', { message_id: 'c1', role: 'cron', text: 'good morning' }, lane);
        await world.advance(2_000);
        agent.say('notification', { kind: 'generic', title: 'Backup', body: 'done', ts: 1 }, lane);
        await world.advance(2_000);
        expect(data(stage).map((one) => [one.class, one.title, one.body])).toEqual([
          ['reply', 'Default', 'whole'],
          ['failure', 'Default', 'The agent could not finish: no money left'],
          ['cron', 'Default', 'good morning'],
          ['notification', 'Backup', 'done'],
        ]);
        const { length } = world.fakes.fcm.asked;
        // RCP6: fifty receipts of another device.
        for (let i = 0; i < 50; i++) await a.send(`mine ${i}`);
        const mine = (await a.history(lane)).payload.messages!.map(({ message_id }) => message_id!);
        await world.advance(10_000);
        const reader = await stage.tenant.join('reader');
        for (const message_id of mine.slice(0, 50)) reader.say('read.receipt', { message_id }, lane);
        await world.advance(10_000);
        const after = world.fakes.fcm.accepted.slice(length);
        // What was shown is taken back, which makes no sound.
        expect(after.filter((one) => one.data.type === 'push')).toEqual([]);
        expect(after.length).toBeLessThanOrEqual(1);
      },
      { unchecked: true },
    ));
});

describe('PSH7: what is not pushed', () => {
  test('PSH7 PSH16: read on another device, answered, or deleted before the look: nothing, and the ledger says why', () =>
    push(async (stage) => {
      const { world, a, agent } = stage;
      await away(stage);
      await turn(stage, 'one', 'read at once');
      const message_id = finalsOf(stage)[0]!.frame.payload.message_id!;
      await a.request('read.receipt', { message_id }, lane);
      await world.advance(3_000);
      expect(await whys(stage)).toEqual([['skipped', 'read']]);

      await turn(stage, 'two', 'deleted at once');
      await a.request('message.delete', { message_ids: [finalsOf(stage)[1]!.frame.payload.message_id!] }, lane);
      await world.advance(3_000);
      expect((await whys(stage))[0]).toEqual(['skipped', 'deleted']);

      const { picker_id, running } = await ask(stage, 'confirm', { choices });
      await a.request('picker.select', { picker_id, value: 'yes' });
      await world.advance(3_000);
      expect((await whys(stage))[0]).toEqual(['skipped', 'answered']);
      running.end();
      await a.next('agent.idle');
      expect(world.fakes.fcm.asked).toEqual([]);
      void agent;
    }));

  test('PSH7 DEL2 C133: nor once it waits for its next try: it is deleted, the device revoked, or come back', () =>
    push(async (stage) => {
      const { world, a, b, tenant } = stage;
      await away(stage);
      world.fakes.fcm.set('token-b', { answer: fcmError(503, 'UNAVAILABLE'), times: 1 });
      await turn(stage, 'one', 'deleted');
      await world.advance(1_300);
      expect(await whys(stage)).toEqual([['pending', 'to be tried again']]);
      await a.request('message.delete', { message_ids: [finalsOf(stage)[0]!.frame.payload.message_id!] }, lane);
      await world.advance(10_000);
      expect(await whys(stage)).toEqual([['skipped', 'deleted']]);

      world.fakes.fcm.set('token-b', { answer: fcmError(500, 'INTERNAL'), times: 1 });
      await turn(stage, 'two', 'the device comes back');
      await world.advance(1_300);
      await b.join();
      await b.sync();
      await world.advance(10_000);
      expect((await whys(stage))[0]).toEqual(['skipped', 'hello']);
      b.cut();
      await world.advance(3_000);

      world.fakes.fcm.set('token-b', { answer: fcmError(500, 'INTERNAL'), times: 1 });
      await turn(stage, 'three', 'the device is revoked');
      await world.advance(1_300);
      await world.store.devices.revoke(tenant.tenant_id, 'tablet' as never, world.time.now());
      await world.advance(60_000);
      expect(world.fakes.fcm.accepted).toEqual([]);
      expect((await whys(stage))[0]).toEqual(['skipped', 'revoked']);
    }));
});

describe('PSH8: one push per lane', () => {
  test('PSH8 NOT3 PSH16: an approval, its notification and finals of two lanes are two pushes; the picker is what its lane shows', () =>
    push(async (stage) => {
      const { world, a, agent } = stage;
      await away(stage);
      const created = await a.request('channel.create', { name: 'Ops' });
      const ops = { chat_id: created.chat_id ?? created.payload.chat_id! };
      await a.send('elsewhere', ops);
      const other = await agent.turn();
      for (const text of ['one', 'two', 'three']) other.message(text);
      other.end();
      const { running, picker_id } = await ask(stage);
      await world.advance(5_000);
      expect(
        data(stage)
          .map((one) => [one.chat_id, one.class, one.title, one.body])
          .sort(),
      ).toEqual([
        [ops.chat_id, 'reply', 'Ops', 'three'],
        [lane.chat_id, 'picker', 'Allow?', 'rm -rf x'],
      ]);
      const states = (await ledgerOf(stage, 'tablet')).map((row) => [row.class, row.state, row.why]);
      expect(states.filter(([, state]) => state === 'sent')).toHaveLength(2);
      expect(states).toContainEqual(['notification', 'skipped', 'with its picker']);
      expect(states.filter(([, state]) => state === 'collapsed')).toHaveLength(2);
      const last = Math.max(...finalsOf(stage).map(({ cursor }) => cursor));
      const device = await world.store.devices.get(stage.tenant.tenant_id, 'tablet' as never);
      expect(device!.last_pushed_cursor).toBeGreaterThanOrEqual(last);
      expect(new Set(data(stage).map(({ tag }) => tag)).size).toBe(2);
      await a.request('picker.select', { picker_id, value: 'no' });
      running.end();
      await a.next('agent.idle');
    }));

  test('PSH8: when the one that stood for its lane is deleted before it was sent, the others are pushed', () =>
    push(async (stage) => {
      const { world, a, agent } = stage;
      await away(stage);
      world.fakes.fcm.set('token-b', { answer: fcmError(503, 'UNAVAILABLE'), times: 1 });
      await a.send('go');
      const running = await agent.turn();
      for (const text of ['first', 'last']) running.message(text);
      running.end();
      await a.next('agent.idle');
      await world.advance(1_300);
      await a.request('message.delete', { message_ids: [finalsOf(stage)[1]!.frame.payload.message_id!] }, lane);
      await world.advance(20_000);
      expect(data(stage).map(({ body }) => body)).toEqual(['first']);
    }));
});

describe('PSH9: exactly one, whoever dies', () => {
  test('PSH9: an answer that is lost: the same cursor and tag again, so the app shows it once', () =>
    push(async (stage) => {
      const { world } = stage;
      await away(stage);
      world.fakes.fcm.set('token-b', { silent: true, times: 1 });
      await turn(stage, 'hi', 'the answer');
      await world.advance(60_000);
      const sent = data(stage);
      expect(sent).toHaveLength(2);
      expect(new Set(sent.map(({ cursor, tag }) => `${cursor} ${tag}`)).size).toBe(1);
      expect((await ledgerOf(stage, 'tablet'))[0]).toMatchObject({ state: 'sent', attempts: 2 });
    }));

  test('PSH9 PSH3: workers die one after another: everyone is pushed once, shown by cursor', () =>
    push(
      async (stage) => {
        const { world, tenant, a } = stage;
        for (let i = 0; i < 20; i++) {
          const device = await tenant.join(`d${i}`);
          await device.request('fcm.register', { fcm_token: `t${i}` });
          device.cut();
        }
        await world.advance(3_000);
        world.fakes.fcm.set('*', { delay_ms: 40 });
        for (let round = 0; round < 4; round++) {
          await turn(stage, `q${round}`, `answer ${round}`);
          await world.advance(1_000 + round * 25);
          for (const worker of world.workers) worker.kill();
          await world.advance(500);
          await world.startWorker();
          await world.advance(500);
        }
        await world.advance(120_000);
        const shown = new Map<string, string[]>();
        for (const { token, data: one } of world.fakes.fcm.accepted) {
          const known = shown.get(token) ?? [];
          if (one.type === 'push' && !known.includes(one.cursor!)) shown.set(token, [...known, one.cursor!]);
        }
        const finals = finalsOf(stage).map(({ cursor }) => String(cursor));
        expect(finals).toHaveLength(4);
        for (let i = 0; i < 20; i++) {
          const rows = await ledgerOf(stage, `d${i}`);
          const left = rows.filter(({ state, why }) => state !== 'sent' && state !== 'collapsed' && why !== 'a newer push of its lane');
          expect(left).toEqual([]);
          expect(rows).toHaveLength(4);
          expect(shown.get(`t${i}`)?.at(-1)).toBe(finals.at(-1));
          const repeats = rows.filter(({ state }) => state === 'sent').map(({ covers }) => covers);
          expect(new Set(repeats).size).toBe(repeats.length);
        }
        void a;
      },
      { workers: 2, expected: ['*'] },
    ));

  test('PSH3 OUT13: the outbox and the queue come back empty: those away are pushed, those here are not', () =>
    push(
      async (stage) => {
        const { world } = stage;
        await away(stage);
        await turn(stage, 'hi', 'the answer');
        world.loseOutbox(3_000);
        await world.advance(40_000);
        expect(data(stage).map(({ body }) => body)).toEqual(['the answer']);
        expect(await whys(stage, 'phone')).toEqual([['skipped', 'confirmed']]);
      },
      { unchecked: true, expected: ['*'] },
    ));
});

test('PSH10: hello waits for the push that is under way, and is told its cursor', () =>
  push(async (stage) => {
    const { world, b } = stage;
    await away(stage);
    world.fakes.fcm.set('token-b', { delay_ms: 600 });
    await turn(stage, 'hi', 'the answer');
    await world.advance(1_100);
    const ack = await b.join();
    expect(ack.payload.last_pushed_cursor).toBe(finalsOf(stage)[0]!.cursor);
    await b.sync();
  }));

describe('PSH11: taking back', () => {
  test('PSH11: read elsewhere, deleted, answered: the shown notification goes, once, from each provider', () =>
    push(async (stage) => {
      const { world, a, b, tenant } = stage;
      const watch = await tenant.join('watch');
      await watch.request('fcm.register', { webpush: world.fakes.webpush.subscribe('watch', `${world.fakes.base}/webpush`) });
      watch.cut();
      const desk = await tenant.join('desk');
      await desk.request('fcm.register', { ntfy_topic: 'desk' });
      desk.cut();
      await away(stage);
      await world.advance(3_000);
      await turn(stage, 'one', 'read elsewhere');
      await world.advance(3_000);
      expect([...world.fakes.ntfy.shown('desk').values()].map(({ message }) => message)).toEqual(['read elsewhere']);
      await a.request('read.receipt', { message_id: finalsOf(stage)[0]!.frame.payload.message_id! }, lane);
      await world.advance(3_000);
      const [pushed] = data(stage);
      const browser = () => world.fakes.webpush.accepted.map(({ payload }) => payload.type);
      expect(data(stage).slice(1)).toEqual([{ type: 'withdraw', tag: pushed!.tag, cursor: pushed!.cursor }]);
      expect(browser()).toEqual(['push', 'withdraw']);
      expect(world.fakes.ntfy.shown('desk').size).toBe(0);
      expect(world.fakes.ntfy.buzzes('desk')).toBe(1);
      // Again, nothing is left to take back.
      await turn(stage, 'two', 'kept');
      await world.advance(3_000);
      expect(world.fakes.ntfy.shown('desk').size).toBe(1);
      await a.request('message.delete', { message_ids: [finalsOf(stage)[1]!.frame.payload.message_id!] }, lane);
      await world.advance(3_000);
      expect(data(stage).map(({ type }) => type)).toEqual(['push', 'withdraw', 'push', 'withdraw']);
      expect(browser()).toEqual(['push', 'withdraw', 'push', 'withdraw']);
      expect(world.fakes.ntfy.shown('desk').size).toBe(0);
      const { running, picker_id } = await ask(stage, 'confirm', { choices, title: 'Sure?' });
      await world.advance(3_000);
      expect([...world.fakes.ntfy.shown('desk').values()].map(({ title }) => title)).toEqual(['Sure?']);
      await a.request('picker.select', { picker_id, value: 'yes' });
      await world.advance(3_000);
      const thrice = ['push', 'withdraw', 'push', 'withdraw', 'push', 'withdraw'];
      expect([data(stage).map(({ type }) => type), browser()]).toEqual([thrice, thrice]);
      expect([world.fakes.ntfy.shown('desk').size, world.fakes.ntfy.buzzes('desk')]).toEqual([0, 3]);
      running.end();
      await a.next('agent.idle');
      void b;
    }));

  test.each([
    ['read elsewhere', async ({ a }: Stage, message_id: string) => a.request('read.receipt', { message_id }, lane)],
    ['deleted', async ({ a }: Stage, message_id: string) => a.request('message.delete', { message_ids: [message_id] }, lane)],
  ] as const)('PSH11 C65: %s, and the queue is lost with Redis: it is taken back all the same', (_, stale) =>
    push(
      async (stage) => {
        const { world } = stage;
        await away(stage);
        await turn(stage, 'one', 'shown');
        await world.advance(3_000);
        await stale(stage, finalsOf(stage)[0]!.frame.payload.message_id!);
        world.loseOutbox(100);
        await world.advance(5_000);
        // Edges have their time to say who is there; then it goes, and does not wait until its mark is old.
        await world.advance(3_000);
        expect(data(stage).map(({ type }) => type)).toEqual(['push', 'withdraw']);
        await world.advance(90_000);
        expect(data(stage).map(({ type }) => type)).toEqual(['push', 'withdraw']);
        expect(await world.store.pushStale.due(world.time.now() + 1e6, 10)).toEqual([]);
      },
      { unchecked: true, expected: ['*'] },
    ),
  );

  test('PSH11 C65: answered, and every session and the queue are lost: taken back', () =>
    push(
      async (stage) => {
        const { world, a } = stage;
        await away(stage);
        const { picker_id } = await ask(stage, 'confirm', { choices, title: 'Sure?' });
        await world.advance(3_000);
        expect(data(stage).map(({ type }) => type)).toEqual(['push']);
        await a.request('picker.select', { picker_id, value: 'yes' });
        for (const session of world.sessions) session.kill();
        world.loseOutbox(100);
        await world.startSession();
        await world.advance(90_000);
        expect(data(stage).map(({ type }) => type)).toEqual(['push', 'withdraw']);
      },
      { unchecked: true, expected: ['*'] },
    ));

  test('PSH11: a provider that is away for an hour is asked again until it takes it, about once a minute', () =>
    push(
      async (stage) => {
        const { world, a } = stage;
        await away(stage);
        await turn(stage, 'one', 'read elsewhere');
        await world.advance(3_000);
        world.fakes.fcm.set('token-b', { answer: fcmError(503, 'UNAVAILABLE') });
        await a.request('read.receipt', { message_id: finalsOf(stage)[0]!.frame.payload.message_id! }, lane);
        const before = world.fakes.fcm.asked.length;
        await world.advance(3_600_000);
        expect(world.fakes.fcm.asked.length - before).toBeLessThan(90);
        world.fakes.fcm.clear('token-b');
        await world.advance(120_000);
        expect(data(stage).map(({ type }) => type)).toEqual(['push', 'withdraw']);
      },
      { unchecked: true, expected: ['*'] },
    ));

  test('PSH11 C86: a provider that cannot take it now is asked again', () =>
    push(
      async (stage) => {
        const { world, a } = stage;
        await away(stage);
        await turn(stage, 'one', 'read elsewhere');
        await world.advance(3_000);
        world.fakes.fcm.set('token-b', { answer: fcmError(503, 'UNAVAILABLE'), times: 2 });
        await a.request('read.receipt', { message_id: finalsOf(stage)[0]!.frame.payload.message_id! }, lane);
        await world.advance(30_000);
        expect(data(stage).map(({ type }) => type)).toEqual(['push', 'withdraw']);
      },
      { expected: ['*'] },
    ));
});

describe('PSH12: what providers are told', () => {
  const modes = async (stage: Stage, content: PushContent, where: Record<string, unknown>) => {
    await stage.world.store.pushRules.setContent(stage.tenant.tenant_id, content);
    await away(stage, where);
    await turn(stage, 'hi', 'a secret');
    await stage.world.advance(3_000);
  };

  const told: readonly (readonly [PushContent, Readonly<Record<string, string>>, readonly [title: string, message: string]])[] = [
    ['full', { title: 'Default', body: 'a secret' }, ['Default', 'a secret']],
    ['title', { title: 'Default' }, ['Default', 'New message']],
    ['ids', {}, ['Iris', 'New message']],
  ];
  const wordsIn = ({ title, body, ...rest }: Readonly<Record<string, string>>) => ({
    words: { ...(title === undefined ? {} : { title }), ...(body === undefined ? {} : { body }) },
    rest,
  });
  test.each(told)('PSH12: %s, at FCM', (content, words) =>
    push(async (stage) => {
      await modes(stage, content, { fcm_token: 'token-b' });
      const said = wordsIn(data(stage)[0]!);
      expect(said.words).toEqual(words);
      expect(said.rest).toMatchObject({ type: 'push', class: 'reply', message_id: finalsOf(stage)[0]!.frame.payload.message_id! });
      expect(JSON.stringify(said.rest)).not.toContain('secret');
    }),
  );
  test.each(told)('PSH12: %s, in a browser', (content, words) =>
    push(async (stage) => {
      const { fakes } = stage.world;
      await modes(stage, content, { webpush: fakes.webpush.subscribe('b', `${fakes.base}/webpush`) });
      const said = wordsIn(fakes.webpush.accepted[0]!.payload);
      expect(said.words).toEqual(words);
      expect(said.rest).toMatchObject({ type: 'push', class: 'reply', message_id: finalsOf(stage)[0]!.frame.payload.message_id! });
      expect(JSON.stringify(said.rest)).not.toContain('secret');
    }),
  );
  test.each(told)('PSH12: %s, at ntfy', (content, _, shown) =>
    push(async (stage) => {
      await modes(stage, content, { ntfy_topic: 'topic' });
      const [one] = stage.world.fakes.ntfy.published;
      expect([one!.title, one!.message]).toEqual(shown);
      expect(JSON.stringify(one).includes('secret')).toBe(content === 'full');
    }),
  );

  test('PSH12: encrypted, FCM sees the cursor and the tag; the device’s key opens the rest', () =>
    push(async (stage) => {
      const phone = receiver(new Uint8Array(16).fill(7));
      await modes(stage, 'encrypted', { fcm_token: 'token-b', fcm_keys: phone.keys });
      const [sent] = data(stage);
      expect(Object.keys(sent!).sort()).toEqual(['aes128gcm', 'cursor', 'tag', 'type']);
      const opened = JSON.parse(phone.decrypt(Buffer.from(sent!.aes128gcm!, 'base64url'))) as Record<string, string>;
      expect(opened).toMatchObject({ title: 'Default', body: 'a secret', cursor: sent!.cursor, tag: sent!.tag });
    }));

  test('PSH12: encrypted without a key is ids; Web Push is always for the browser alone', () =>
    push(async (stage) => {
      const { world } = stage;
      await modes(stage, 'encrypted', { fcm_token: 'token-b' });
      expect(data(stage)[0]).not.toHaveProperty('body');
      await stage.b.join();
      await stage.b.request('fcm.register', { fcm_token: '', webpush: world.fakes.webpush.subscribe('b', `${world.fakes.base}/webpush`) });
      stage.b.cut();
      await world.advance(3_000);
      await turn(stage, 'again', 'another secret');
      await world.advance(3_000);
      expect(world.fakes.webpush.accepted).toMatchObject([{ payload: { body: 'another secret' }, urgency: 'high' }]);
    }));

  test('PSH12 C133: ntfy is told words only with full', () =>
    push(async (stage) => {
      await modes(stage, 'encrypted', { ntfy_topic: 'topic' });
      expect(stage.world.fakes.ntfy.published).toMatchObject([{ title: 'Iris', message: 'New message' }]);
    }));
});

describe('PSH13: mute and quiet hours', () => {
  test('PSH13: a muted lane, quiet hours over midnight in the device’s zone, and what they leave', () =>
    push(
      async (stage) => {
        const { world, a, b } = stage;
        const created = await a.request('channel.create', { name: 'Ops' });
        const ops = { chat_id: created.chat_id ?? created.payload.chat_id! };
        const now = world.time.now();
        expect(await b.request('push.mute', { muted_until: now + 60_000 }, ops)).toMatchObject({ type: 'ack', payload: { ok: true } });
        await away(stage);
        await turn(stage, 'x', 'in a muted lane', ops);
        await turn(stage, 'x', 'in another');
        await world.advance(3_000);
        expect(data(stage).map(({ body }) => body)).toEqual(['in another']);
        expect(await whys(stage)).toContainEqual(['skipped', 'muted']);
        await world.advance(60_000);
        await turn(stage, 'y', 'no longer muted', ops);
        await world.advance(3_000);
        expect(data(stage).at(-1)!.body).toBe('no longer muted');

        await b.join();
        const hour = (ms: number) => new Date(ms).toISOString().slice(11, 16);
        const quiet = { from: hour(world.time.now() - 3_600_000), to: hour(world.time.now() + 3_600_000), time_zone: 'UTC' };
        await b.request('push.mute', { quiet });
        b.cut();
        await world.advance(3_000);
        await turn(stage, 'z', 'at night');
        await world.advance(3_000);
        expect((await whys(stage))[0]).toEqual(['skipped', 'quiet hours']);
        await b.join();
        await b.request('push.mute', {});
        b.cut();
        await world.advance(3_000);
        await turn(stage, 'z', 'by day');
        await world.advance(3_000);
        expect(data(stage).at(-1)!.body).toBe('by day');
      },
      { unchecked: true },
    ));

  test('PSH13 ENV9: what is no time, no zone, no lane changes nothing', () =>
    push(async ({ world, tenant, a }) => {
      const quiet = { from: '22:00', to: '07:00', time_zone: 'Europe/Berlin' };
      for (const [payload, scope, code] of [
        [{ quiet: { ...quiet, from: '24:00' } }, {}, 'unsupported'],
        [{ quiet: { ...quiet, time_zone: 'Mars/Base' } }, {}, 'unsupported'],
        [{ muted_until: 'soon' }, {}, 'unsupported'],
        [{ quiet }, { chat_id: 'android:chan_99' }, 'not_found'],
      ] as const)
        expect(await a.request('push.mute', payload as never, scope)).toMatchObject({ type: 'error', payload: { code } });
      expect(await world.store.pushRules.list(tenant.tenant_id)).toEqual([]);
    }));
});

describe('PSH14: registrations', () => {
  test('C82 PSH14: after a dead token, hello with the same token alone restores pushes', () =>
    push(async (stage) => {
      const { world, b, tenant } = stage;
      await away(stage);
      world.fakes.fcm.set('token-b', { answer: fcmError(404, 'UNREGISTERED'), times: 1 });
      await turn(stage, 'one', 'one');
      await world.advance(5_000);
      expect(await world.store.pushTargets.list(tenant.tenant_id)).toEqual([]);
      await b.connect();
      await b.hello({ fcm_token: 'token-b' });
      await b.sync();
      b.cut();
      await world.advance(3_000);
      await turn(stage, 'two', 'two');
      await world.advance(5_000);
      expect(data(stage).map(({ body }) => body)).toEqual(['two']);
    }));

  test('PSH14: a verdict about an old registration leaves the new one alone', () =>
    push(async (stage) => {
      const { world, tenant } = stage;
      await away(stage);
      world.fakes.fcm.set('token-b', { answer: fcmError(404, 'UNREGISTERED'), delay_ms: 2_000, times: 1 });
      await turn(stage, 'one', 'one');
      await world.advance(1_200);
      await world.store.pushTargets.register(tenant.tenant_id, 'tablet' as never, [{ kind: 'fcm', address: 'token-b' }], world.time.now());
      await world.advance(30_000);
      expect(await world.store.pushTargets.list(tenant.tenant_id)).toHaveLength(1);
      expect(data(stage).map(({ body }) => body)).toEqual(['one']);
    }));

  test('PSH5 C133: a token that another account registers gets nothing of the first', () =>
    push(async (stage) => {
      const { world } = stage;
      await away(stage);
      const other = await world.tenant();
      const stranger = await other.join('stranger');
      await stranger.request('fcm.register', { fcm_token: 'token-b' });
      await turn(stage, 'one', 'for the first');
      await world.advance(20_000);
      expect(world.fakes.fcm.asked).toEqual([]);
      expect(await whys(stage)).toEqual([['skipped', 'no target']]);
    }));

  test('PSH14: a subscription that expired, or names a server that is not on the list, is dropped and never called', () =>
    push(async (stage) => {
      const { world, tenant, b } = stage;
      const { keys, endpoint } = world.fakes.webpush.subscribe('b', `${world.fakes.base}/webpush`);
      for (const bad of ['https://10.0.0.1/push', 'http://localhost:9/x', 'file:///etc/passwd', 'https://providers.test.evil.example/x']) {
        await b.request('fcm.register', { webpush: { endpoint: bad, keys } });
        b.cut();
        await world.advance(3_000);
        await turn(stage, bad, `to ${bad}`);
        await world.advance(5_000);
        expect(await world.store.pushTargets.list(tenant.tenant_id)).toEqual([]);
        await b.join();
        await b.sync();
      }
      world.fakes.webpush.expire('b');
      await away(stage, { webpush: { endpoint, keys } });
      await world.advance(3_000);
      await turn(stage, 'gone', 'to nobody');
      await world.advance(5_000);
      expect(world.fakes.webpush.asked).toMatchObject([{ name: 'b', status: 410 }]);
      expect(await world.store.pushTargets.list(tenant.tenant_id)).toEqual([]);
    }));
});

test('C86 PSH15: a push that is too old is given up, and sync still has the frame', () =>
  push(
    async (stage) => {
      const { world, b } = stage;
      await away(stage);
      world.fakes.fcm.set('token-b', { answer: fcmError(429, 'QUOTA_EXCEEDED', { 'retry-after': '120' }) });
      await turn(stage, 'hi', 'the answer');
      await world.advance(200_000);
      expect(world.fakes.fcm.asked).toHaveLength(1);
      expect(await whys(stage)).toEqual([['failed', 'too old to be tried again']]);
      await b.join();
      await b.sync();
      expect(b.frames('message').at(-1)!.payload.text).toBe('the answer');
    },
    { worker_config: { push_age_ms: 60_000 } },
  ));

test('PSH15: an access token that was revoked is exchanged once more, by a signature that the provider checks', () =>
  push(async (stage) => {
    const { world } = stage;
    await away(stage);
    await turn(stage, 'one', 'one');
    await world.advance(3_000);
    world.fakes.fcm.revokeAccess();
    await turn(stage, 'two', 'two');
    await world.advance(3_000);
    expect(data(stage).map(({ body }) => body)).toEqual(['one', 'two']);
    expect(world.fakes.fcm.exchanges).toBe(2);
    expect(world.fakes.fcm.asked).toHaveLength(2);
  }));

describe('PSH17: answering from the notification', () => {
  const answering = async (stage: Stage) => {
    await away(stage);
    const asked = await ask(stage);
    await stage.world.advance(3_000);
    const [pushed] = data(stage);
    return { ...asked, token: pushed!.action_token!, pushed: pushed! };
  };
  const answer = ({ world }: Stage, body: unknown, edge = 0) => world.edges[edge]!.answerPush(body);

  test('PSH17: the token answers once, whichever edge is asked; devices and the agent hear of it', () =>
    push(async (stage) => {
      const { a, agent } = stage;
      const { token, pushed, running, picker_id } = await answering(stage);
      expect(pushed).toMatchObject({ answer_url, choices: JSON.stringify(choices) });
      expect(await answer(stage, { token, value: 'maybe' })).toMatchObject({ status: 400, body: { error: { code: 'unsupported' } } });
      expect(await answer(stage, { token, value: 'yes' }, 1)).toEqual({ status: 200, body: { ok: true } });
      expect(await a.next('picker.closed')).toMatchObject({ payload: { picker_id, value: 'yes' } });
      expect(await agent.next('picker.select')).toMatchObject({ payload: { value: 'yes' } });
      expect(await answer(stage, { token, value: 'no' })).toMatchObject({ status: 401, body: { error: { code: 'auth' } } });
      running.end();
      await a.next('agent.idle');
    }));

  test('PSH17 ERR3: wrong tokens, another tenant’s, an answered picker, bad bodies: refused, and nothing happens', () =>
    push(async (stage) => {
      const { world, a } = stage;
      const { token, picker_id, running } = await answering(stage);
      const other = await world.tenant();
      const forged = token.replace(stage.tenant.tenant_id, other.tenant_id);
      for (const wrong of [forged, `${token}x`, 'x', stage.tenant.device_token])
        expect(await answer(stage, { token: wrong, value: 'yes' })).toMatchObject({ status: 401, body: { error: { code: 'auth' } } });
      for (const bad of [null, [], 7, {}, { token }, { token, value: 7 }, { token: 7, value: 'yes' }])
        expect((await answer(stage, bad)).status).toBe(400);
      await a.request('picker.select', { picker_id, value: 'no' });
      expect(await answer(stage, { token, value: 'yes' })).toMatchObject({ status: 404, body: { error: { code: 'not_found' } } });
      running.end();
      await a.next('agent.idle');
      expect((await world.store.pickers.get(stage.tenant.tenant_id, picker_id as never))?.value).toBe('no');
    }));

  test('PSH17 LIM8: guessed tokens count as hellos do, on all edges together, and the right one is taken once there is something left', () =>
    push(async (stage) => {
      const { world, tenant, a } = stage;
      const { token, running } = await answering(stage);
      const statuses: number[] = [];
      for (let n = 0; n < 24; n++) statuses.push((await answer(stage, { token: `${token}${n}`, value: 'yes' }, n % 2)).status);
      expect(statuses.filter((status) => status === 401)).toHaveLength(20);
      expect(statuses.slice(20)).toEqual([429, 429, 429, 429]);
      // A hello of the same address has nothing left either.
      const guess = tenant.device('guess', { edge: 1, address: '127.0.0.1', token: `${tenant.device_token}x` });
      await guess.connect();
      expect((await guess.hello()).payload.code).toBe('rate_limited');
      await world.advance(12_000);
      expect(await answer(stage, { token, value: 'yes' }, 1)).toEqual({ status: 200, body: { ok: true } });
      running.end();
      await a.next('agent.idle');
    }));

  test('PSH17: ntfy’s buttons carry the same', () =>
    push(async (stage) => {
      const { world, a } = stage;
      await away(stage, { ntfy_topic: 'topic' });
      const { running } = await ask(stage);
      await world.advance(3_000);
      const [{ actions } = { actions: [] }] = world.fakes.ntfy.published;
      expect(actions.map(({ label, url }) => [label, url])).toEqual([
        ['Allow', answer_url],
        ['Deny', answer_url],
      ]);
      expect(await answer(stage, JSON.parse(actions[1]!.body))).toEqual({ status: 200, body: { ok: true } });
      expect(await a.next('picker.closed')).toMatchObject({ payload: { value: 'no' } });
      running.end();
      await a.next('agent.idle');
    }));
});

test('C89 PSH18: a hundred kilobytes: the body is cut under 4 KB between characters, sync has all of it', () =>
  push(async (stage) => {
    const { world, b, a, agent } = stage;
    const family = '👩‍👩‍👧‍👦';
    const long = `${family.repeat(20)} ${'é漢字 '.repeat(20_000)}`.slice(0, 60_000);
    await away(stage);
    await a.send('tell me all');
    const running = await agent.turn();
    running.message(long);
    running.end();
    await a.next('agent.idle');
    await world.advance(3_000);
    const [sent] = data(stage);
    expect(Buffer.byteLength(JSON.stringify(sent))).toBeLessThan(4_096);
    expect(sent!.body!.endsWith('…')).toBe(true);
    expect(long.startsWith(sent!.body!.slice(0, -1))).toBe(true);
    expect(sent!.body!).not.toContain('\ufffd');
    expect(world.fakes.fcm.asked).toHaveLength(1);
    await b.join();
    await b.sync();
    const stood = b.frames('message').find((frame: AnyFrame) => frame.payload.role === 'assistant')!;
    expect(stood.payload.text).toBe(long);
  }));
