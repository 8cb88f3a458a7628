import { fcmError, lane, ntfyError, type Stage, type Trouble } from '@iris/testkit';
import { describe, expect, test } from '@jest/globals';
import { away, ledgerOf, onPushStage as push, turn } from './push-stage.js';

type Kind = 'fcm' | 'webpush' | 'ntfy';
const kinds: readonly Kind[] = ['fcm', 'webpush', 'ntfy'];

/** Where the tablet is reached by this provider, under the name `it` there. */
const where = ({ world: { fakes } }: Stage, kind: Kind): Record<string, unknown> =>
  kind === 'fcm'
    ? { fcm_token: 'it' }
    : kind === 'webpush'
      ? { webpush: fakes.webpush.subscribe('it', `${fakes.base}/webpush`) }
      : { ntfy_topic: 'it' };
/** What this provider took for the tablet: when, and the text of it. */
const taken = ({ world: { fakes } }: Stage, kind: Kind): { at: number; body: string | undefined; text: string }[] => {
  if (kind === 'ntfy')
    return fakes.ntfy.published
      .filter(({ topic }) => topic === 'it')
      .map((one) => ({ at: one.at, body: one.message, text: JSON.stringify(one) }));
  const all =
    kind === 'fcm'
      ? fakes.fcm.accepted.filter(({ token }) => token === 'it').map(({ data, at }) => ({ data, at }))
      : fakes.webpush.accepted.filter(({ name }) => name === 'it').map(({ payload, at }) => ({ data: payload, at }));
  return all.map(({ data, at }) => ({ at, body: data.body, text: JSON.stringify(data) }));
};
const targets = ({ world, tenant }: Stage) => world.store.pushTargets.list(tenant.tenant_id);

describe('C80 PSH14: whatever a provider calls dead', () => {
  test.each([
    ['fcm', 'UNREGISTERED', fcmError(404, 'UNREGISTERED')],
    ['fcm', 'SENDER_ID_MISMATCH', fcmError(403, 'SENDER_ID_MISMATCH')],
    ['webpush', '404', { status: 404 }],
    ['webpush', '410', { status: 410 }],
  ] as const)(
    '%s, %s: the address is dropped at once and never called again, the topic is used, and the frame is there',
    (kind, _, answer) =>
      push(async (stage) => {
        const { world, b } = stage;
        await b.request('fcm.register', { ntfy_topic: 'topic' });
        await away(stage, where(stage, kind));
        world.fakes[kind].set('it', { answer });
        for (const text of ['one', 'two', 'three']) {
          await turn(stage, text, `answer ${text}`);
          await world.advance(10_000);
        }
        const calls = kind === 'fcm' ? world.fakes.fcm.asked.filter(({ token }) => token === 'it') : world.fakes.webpush.asked;
        expect(calls).toHaveLength(1);
        expect((await targets(stage)).map((one) => one.kind)).toEqual(['ntfy']);
        expect(world.fakes.ntfy.published.map(({ message }) => message)).toEqual(['answer one', 'answer two', 'answer three']);
        await b.join();
        await b.sync();
        expect(b.frames('message').filter(({ payload }) => payload.role === 'assistant')).toHaveLength(3);
      }),
  );
});

describe('C86 PSH15: whatever a provider cannot take now', () => {
  const at = new Date(Date.UTC(2_000, 0, 1)).toUTCString();
  const troubles: readonly (readonly [Kind, string, Trouble, number])[] = [
    ['fcm', '429 with Retry-After', { answer: fcmError(429, 'QUOTA_EXCEEDED', { 'retry-after': '60' }) }, 60_000],
    ['fcm', '503 with Retry-After', { answer: fcmError(503, 'UNAVAILABLE', { 'retry-after': '60' }) }, 60_000],
    ['fcm', '500', { answer: fcmError(500, 'INTERNAL') }, 700],
    ['webpush', '429 with Retry-After', { answer: { status: 429, headers: { 'retry-after': '60' } } }, 60_000],
    ['webpush', '503', { answer: { status: 503 } }, 700],
    ['webpush', 'a Retry-After long past', { answer: { status: 503, headers: { 'retry-after': at } } }, 700],
    ['ntfy', '429 with Retry-After', { answer: ntfyError(429, 42901, 'limit reached', { 'retry-after': '60' }) }, 60_000],
    ['ntfy', '507', { answer: ntfyError(507, 50701, 'cannot publish to UnifiedPush topic without previously active subscriber') }, 700],
    ['ntfy', '500', { answer: ntfyError(500, 50001, 'internal server error') }, 700],
  ];
  test.each(troubles)('%s, %s: tried again and not before its time; others are pushed within 2 s', (kind, _, trouble, least_ms) =>
    push(async (stage) => {
      const { world, tenant } = stage;
      const healthy = await tenant.join('healthy');
      await healthy.request('fcm.register', { fcm_token: 'healthy' });
      healthy.cut();
      await away(stage, where(stage, kind));
      world.fakes[kind].set('it', { ...trouble, times: 1 });
      await turn(stage, 'hi', 'one');
      const began = tenant.log.find(({ frame }) => frame.payload.role === 'assistant')!.at!;
      await world.advance(120_000);
      const other = world.fakes.fcm.accepted.find(({ token }) => token === 'healthy')!;
      expect(other.at - began).toBeLessThan(2_000);
      const [mine] = taken(stage, kind);
      expect(taken(stage, kind)).toHaveLength(1);
      expect(mine!.at - began).toBeGreaterThan(least_ms);
      expect(await ledgerOf(stage, 'tablet')).toMatchObject([{ state: 'sent', attempts: 2, provider: kind }]);
    }),
  );

  test.each(kinds)('%s never takes it: so many tries with growing pauses, then it is given up, and the frame is there', (kind) =>
    push(async (stage) => {
      const { world, b } = stage;
      await away(stage, where(stage, kind));
      world.fakes[kind].set('it', { answer: { status: 503 } });
      await turn(stage, 'hi', 'one');
      await world.advance(3_600_000);
      expect(await ledgerOf(stage, 'tablet')).toMatchObject([{ state: 'failed', why: 'tried often enough', attempts: 8 }]);
      await b.join();
      await b.sync();
      expect(b.frames('message').some(({ payload }) => payload.text === 'one')).toBe(true);
    }),
  );
});

describe('C89 PSH18: whatever is long', () => {
  const family = '👩‍👩‍👧‍👦';
  const texts: readonly (readonly [string, string])[] = [
    ['letters', 'a'.repeat(60_000)],
    ['what JSON doubles', '"\\\n'.repeat(20_000)],
    ['what JSON makes six of', '\u0001'.repeat(60_000)],
    ['characters of three bytes', '漢字'.repeat(20_000)],
    ['families', family.repeat(2_000)],
    ['one character that never ends', `e${'\u0301'.repeat(30_000)}`],
  ];
  const combinations = kinds.flatMap((kind) =>
    (kind === 'ntfy' ? (['full'] as const) : (['full', 'encrypted'] as const)).flatMap((content) =>
      texts.map(([what, text]) => [kind, content, what, text] as const),
    ),
  );
  test.each(combinations)('%s, %s: %s: one request, which fits', (kind, content, _, text) =>
    push(
      async (stage) => {
        const { world, tenant, agent } = stage;
        await world.store.pushRules.setContent(tenant.tenant_id, content);
        const { keys } = world.fakes.webpush.subscribe('keys', world.fakes.base);
        await away(stage, { ...where(stage, kind), ...(kind === 'fcm' && content === 'encrypted' ? { fcm_keys: keys } : {}) });
        agent.say('message', { message_id: 'long', role: 'cron', text }, lane);
        await world.advance(5_000);
        expect((await ledgerOf(stage, 'tablet')).map(({ state, attempts, answer }) => [state, attempts, answer])).toEqual([
          ['sent', 1, kind === 'webpush' ? '201' : '200'],
        ]);
        const [one] = taken(stage, kind);
        expect(Buffer.byteLength(one!.text)).toBeLessThan(4_096);
        if (one!.body === undefined) return;
        expect(Buffer.byteLength(one!.body)).toBeLessThanOrEqual(1_200);
        expect(text.startsWith(one!.body.slice(0, -1).trimEnd()) || one!.body === '…').toBe(true);
        expect(one!.body).not.toContain('\ufffd');
      },
      { unchecked: true },
    ),
  );

  test.each(kinds)('%s: a question with long words and many answers', (kind) =>
    push(
      async (stage) => {
        const { world, agent } = stage;
        await away(stage, where(stage, kind));
        const choices = Array.from({ length: 10 }, (_, n) => ({ value: `v${n}`, label: `${n} ${'漢'.repeat(100)}` }));
        agent.say('picker.choice', { picker_id: 'p', title: '"'.repeat(128), question: '漢'.repeat(5_000), choices }, lane);
        await world.advance(5_000);
        expect((await ledgerOf(stage, 'tablet')).map(({ state, attempts }) => [state, attempts])).toEqual([['sent', 1]]);
        expect(Buffer.byteLength(taken(stage, kind)[0]!.text)).toBeLessThan(4_096);
      },
      { unchecked: true },
    ),
  );
});

test('PSH8: a phone that FCM does not reach hears of every lane, though FCM keeps four collapse keys; a busy lane stays one message', () =>
  push(async (stage) => {
    const { world, a, agent } = stage;
    await away(stage, { fcm_token: 'it' });
    const lanes = [lane];
    for (let n = 1; n < 6; n++) {
      const { payload } = await a.request('channel.create', { name: `Lane ${n}` });
      lanes.push({ ...lane, chat_id: payload.chat_id as typeof lane.chat_id });
    }
    const say = async (n: number, text: string) => {
      agent.say('message', { message_id: `m ${text}`, role: 'cron', text }, lanes[n]);
      await world.advance(3_000);
    };
    for (let n = 0; n < 6; n++) await say(n, `first of ${n}`);
    for (let n = 0; n < 3; n++) await say(0, `busy ${n}`);
    await say(5, 'second of 5');
    const kept = world.fakes.fcm.kept('it').map(({ data, android }) => [data.body, android.collapse_key === undefined]);
    expect(kept).toEqual([
      ['first of 1', false],
      ['first of 2', false],
      ['first of 3', false],
      ['first of 4', true],
      ['first of 5', true],
      ['busy 2', false],
      ['second of 5', true],
    ]);
    // What an app shows, by tag: the newest of each lane.
    expect(new Set(world.fakes.fcm.kept('it').map(({ data }) => data.tag)).size).toBe(6);
    // Taking one back takes no key either.
    const read = stage.tenant.log.find(({ frame }) => frame.payload.text === 'first of 4')!;
    await a.request('read.receipt', { message_id: read.frame.payload.message_id! }, lanes[4]);
    await world.advance(3_000);
    const gone = world.fakes.fcm.accepted.at(-1)!;
    expect([gone.data.type, gone.android.collapse_key]).toEqual(['withdraw', undefined]);
    // It comes, and the next absence begins anew.
    const back = stage.tenant.device('tablet');
    await back.join();
    await back.sync();
    back.cut();
    await world.advance(2_500);
    await say(5, 'third of 5');
    expect(world.fakes.fcm.accepted.at(-1)).toMatchObject({ data: { body: 'third of 5' }, android: { collapse_key: expect.any(String) } });
  }));
