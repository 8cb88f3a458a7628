import { pack, subjects, type ToSession } from '@iris/bus';
import type { SessionId } from '@iris/protocol';
import type { Store } from '@iris/store';
import { describe, expect, test } from '@jest/globals';
import { lane, rig, tenant } from './testing/rig.js';

const texts = (frames: readonly { type: string; payload: Record<string, unknown> }[]) =>
  frames.filter(({ type }) => type === 'message').map(({ payload }) => payload.text);

describe('the steps', () => {
  test('ENV22, OUT11: nothing is said before the message is stored and appended', async () => {
    const { device, clock, store, outbox, edge, log } = await rig();
    const phone = device();
    await phone.hello();
    await phone.send('zero');
    outbox.setConnected(false);
    edge.send([phone.make('message.send', { text: 'one' })]);
    await clock.advance(3_000);
    // In the store, but not in the order: nobody hears of it yet.
    expect((await store.messages.page(tenant, lane as never, { limit: 10 })) as unknown).toMatchObject({
      rows: [{ text: 'zero' }, { text: 'one', cursor: null }],
    });
    expect(phone.answersTo(3)).toEqual([]);
    outbox.setConnected(true);
    await clock.advance(2_000);
    expect(phone.frameTo(3)).toMatchObject({ type: 'message', payload: { text: 'one' } });
    expect(texts(await log())).toEqual(['zero', 'one']);
    expect(texts(edge.frames())).toEqual(['zero', 'one']);
  });

  test('OUT12: the place of a message is written behind its frame', async () => {
    const { device, store, clock } = await rig();
    const phone = device();
    await phone.hello();
    const { payload } = await phone.send('one');
    await clock.settle();
    expect((await store.messages.get(tenant, payload.message_id!))?.cursor).toBe(1);
  });

  test('ORD2: sends that come together take effect in order, in one statement and one append', async () => {
    let inserts = 0;
    const counting = (store: Store): Store => ({
      ...store,
      messages: {
        ...store.messages,
        insert(rows) {
          inserts++;
          return store.messages.insert(rows);
        },
      },
    });
    const { device, edge, clock, log } = await rig({ store: counting });
    const phone = device();
    await phone.hello();
    const wanted = Array.from({ length: 20 }, (_, i) => `text ${i}`);
    edge.send(wanted.map((text) => phone.make('message.send', { text })));
    await clock.settle();
    expect(texts(await log())).toEqual(wanted);
    expect(inserts).toBeLessThan(wanted.length);
    for (let n = 2; n <= 21; n++) expect(phone.frameTo(n)).toMatchObject({ payload: { text: wanted[n - 2] } });
  });

  test('ENV25: the frame that answers names its request; others get the same bytes', async () => {
    const { device, edge } = await rig();
    const phone = device();
    await phone.hello();
    await phone.send('one');
    expect(edge.durable()[0]).toMatchObject({ cursor: 1, previous: 0, origin: { connection_id: phone.connection_id, n: 2 } });
    expect(phone.answersTo(2)).toMatchObject([{ cursor: 1, body: new Uint8Array() }]);
  });
});

describe('again', () => {
  test('ENV24, OUT10: a request that comes again has one effect, and the same answer with the frame', async () => {
    const { device, clock, log } = await rig();
    const phone = device();
    await phone.hello();
    await phone.send('one');
    phone.again(2);
    await clock.settle();
    expect(texts(await log())).toEqual(['one']);
    const [first, second] = phone.answersTo(2);
    expect(first).toMatchObject({ cursor: 1 });
    expect(second?.cursor).toBe(1);
    expect(Buffer.from(second!.body).toString()).toContain('"text":"one"');
  });

  test('ENV24: the instance dies between the store and the outbox; another finishes what it began', async () => {
    const { device, clock, store, outbox, edge, log, start, kill } = await rig();
    const phone = device();
    await phone.hello();
    outbox.setConnected(false);
    edge.send([phone.make('message.send', { text: 'one' })]);
    await clock.advance(500);
    kill(0);
    outbox.setConnected(true);
    await start('s2');
    edge.use('s2');
    phone.again(2, { base: 2 });
    await clock.advance(2_000);
    expect(texts(await log())).toEqual(['one']);
    expect(phone.frameTo(2)).toMatchObject({ payload: { text: 'one' } });
    const page = await store.messages.page(tenant, lane as never, { limit: 10 });
    expect(page).toMatchObject({ rows: [{ text: 'one', cursor: 1 }] });
  });

  test('ENV24: the instance dies after the append and before it is told; another answers with the frame that stands', async () => {
    const { device, clock, edge, hub, log, start, kill } = await rig();
    const phone = device();
    await phone.hello();
    // It is deaf and dumb from here on, but its way to the stores is open.
    edge.send([phone.make('message.send', { text: 'one' })]);
    for (let i = 0; i < 3; i++) await Promise.resolve();
    await clock.settle();
    kill(0);
    await start('s2');
    edge.use('s2');
    phone.again(2, { base: 2 });
    await clock.settle();
    expect(texts(await log())).toEqual(['one']);
    const again = phone.answersTo(2).at(-1);
    expect(again).toMatchObject({ cursor: 1 });
    expect(Buffer.from(again!.body).toString()).toContain('"text":"one"');
    void hub;
  });

  test('MSG4, MSG5: the same client_ref from another connection is the first message; with another text it is refused', async () => {
    const { device, log } = await rig();
    const phone = device();
    await phone.hello();
    const first = await phone.send('one', { client_ref: 'r1' });
    const later = device('d1');
    await later.hello();
    const second = await later.send('one', { client_ref: 'r1' });
    expect(second.payload).toEqual(first.payload);
    expect(await later.send('two', { client_ref: 'r1' })).toMatchObject({ type: 'error', payload: { code: 'unsupported' } });
    const other = device('d2');
    await other.hello();
    expect((await other.send('one', { client_ref: 'r1' })).payload.message_id).not.toBe(first.payload.message_id);
    expect(texts(await log())).toEqual(['one', 'one']);
  });

  test('MSG4: after 24 h a client_ref is free', async () => {
    const { device, clock, log } = await rig({ config: { client_ref_ms: 60_000 } });
    const before = device();
    await before.hello();
    await before.send('one', { client_ref: 'r1' });
    await clock.advance(61_000);
    const phone = device();
    await phone.hello();
    expect(await phone.send('two', { client_ref: 'r1' })).toMatchObject({ payload: { text: 'two' } });
    expect((await phone.send('two', { client_ref: 'r1' })).payload.text).toBe('two');
    expect(texts(await log())).toEqual(['one', 'two']);
  });
});

describe('stores that fail', () => {
  const failing = () => {
    const state = { down: false, calls: 0 };
    const through = (store: Store): Store => ({
      ...store,
      ready: async () => !state.down,
      messages: {
        ...store.messages,
        async insert(rows) {
          state.calls++;
          if (state.down) throw new Error('connection refused');
          return store.messages.insert(rows);
        },
      },
    });
    return { state, through };
  };

  test('ENV22, ENV26: a store that is away is asked again until the deadline, and then not any more', async () => {
    const { state, through } = failing();
    const { device, clock, edge, log } = await rig({ store: through });
    const phone = device();
    await phone.hello();
    state.down = true;
    edge.send([phone.make('message.send', { text: 'one' })]);
    await clock.advance(5_000);
    expect(phone.answersTo(2)).toEqual([]);
    state.down = false;
    await clock.advance(1_500);
    expect(phone.frameTo(2)).toMatchObject({ type: 'message' });

    state.down = true;
    edge.send([phone.make('message.send', { text: 'two' })]);
    await clock.advance(10_000);
    expect(phone.frameTo(3)).toMatchObject({ type: 'error', payload: { code: 'internal', message: 'try again' } });
    state.down = false;
    await clock.advance(60_000);
    expect(texts(await log())).toEqual(['one']);
  });

  test('ENV26: a fault of ours is not tried for ever, and takes no other request along', async () => {
    const poison = (store: Store): Store => ({
      ...store,
      messages: {
        ...store.messages,
        async insert(rows) {
          if (rows.some(({ message }) => message.text === 'poison')) throw new TypeError('cannot be stored');
          return store.messages.insert(rows);
        },
      },
    });
    const { device, clock, edge, log } = await rig({ store: poison });
    const phone = device();
    await phone.hello();
    edge.send(['before', 'poison', 'after'].map((text) => phone.make('message.send', { text })));
    await clock.advance(3_000);
    expect(texts(await log())).toEqual(['before', 'after']);
    expect(phone.frameTo(3)).toMatchObject({ type: 'error', payload: { code: 'internal' } });
    expect(phone.frameTo(4)).toMatchObject({ payload: { text: 'after' } });
  });
});

describe('cursors', () => {
  test('OUT13: the outbox comes back empty: the sequence goes on above all that was given, and nothing is lost for who had everything', async () => {
    const { device, agent, outbox, edge, log, meter } = await rig({ config: { cursor_block: 100 } });
    const phone = device();
    await phone.hello();
    const link = agent();
    await link.hello();
    await phone.send('one');
    await phone.send('two');
    expect((await log()).map(({ cursor }) => cursor)).toEqual([1, 2]);
    outbox.forgetEverything();
    await device('d2').hello();
    await phone.send('three');
    const told = edge.durable().filter(({ type }) => type === 'message');
    expect(told.map(({ cursor }) => cursor)).toEqual([1, 2, 101]);
    // The jump is real: nobody lost anything in it.
    expect(told.at(-1)?.previous).toBe(2);
    expect(meter.total('iris_session_seeds_total', { why: 'lost' })).toBe(1);
    // What runs is rebuilt by the agents, who are asked to come back.
    expect(edge.closes()).toMatchObject([{ connection_id: link.connection_id, code: 1012 }]);
  });

  test('OUT13: a server that was restarted with what it had is not believed', async () => {
    const { device, outbox, edge } = await rig({ config: { cursor_block: 100 } });
    const phone = device();
    await phone.hello();
    await phone.send('one');
    outbox.restart();
    await phone.send('two');
    expect(edge.durable().map(({ cursor }) => cursor)).toEqual([1, 101]);
  });

  test('OUT13: a block that is used up is followed by the next', async () => {
    const { device, log } = await rig({ config: { cursor_block: 3 } });
    const phone = device();
    await phone.hello();
    for (let i = 0; i < 10; i++) expect((await phone.send(`${i}`)).type).toBe('message');
    expect((await log()).map(({ cursor }) => cursor)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  });

  test('OUT13: what another instance appended meanwhile is not taken for known', async () => {
    const { device, outbox, edge, start } = await rig({ config: { cursor_block: 100 } });
    const phone = device();
    await phone.hello();
    await phone.send('one');
    await start('s2');
    edge.use('s2');
    const other = device('d2');
    await other.hello();
    await other.send('two');
    outbox.forgetEverything();
    edge.use('s1');
    await device('d3').hello();
    await phone.send('three');
    expect(texts(edge.frames())).toEqual(['one', 'two', 'three']);
    // It cannot know that 2 was given: so it does not say that nothing was lost.
    expect(edge.durable().at(-1)?.previous).not.toBe(1);
  });
});

test('an instance that stops finishes what it holds and says goodbye first', async () => {
  const { device, edge, clock, session, hub, log } = await rig();
  const phone = device();
  await phone.hello();
  const announcements: string[] = [];
  hub
    .connect('listener')
    .subscribe(subjects.announce, (data) => announcements.push((JSON.parse(Buffer.from(data).toString()) as { state: string }).state));
  edge.send([phone.make('message.send', { text: 'last' })]);
  const stopped = session.stop({ within_ms: 5_000 });
  expect(session.ready()).toBe(false);
  await clock.advance(5_000);
  await stopped;
  expect(announcements).toEqual(['leaving']);
  expect(texts(await log())).toEqual(['last']);
  expect(phone.frameTo(2)).toMatchObject({ payload: { text: 'last' } });
  const late: ToSession = phone.make('message.send', { text: 'too late' });
  await expect(hub.connect('late').request(subjects.session('s1' as SessionId), pack([late]), { timeout_ms: 100 })).rejects.toThrow();
});
