import type { Cursor, DeviceId, MessageId, PickerId, TenantId, TokenId } from '@iris/protocol';
import { describe, expect, test } from '@jest/globals';
import type { PushLedgerRow, PushOutcome } from '../push.js';
import { flat, newLane, newTenant, type Subject, unique } from './clients.js';

const later = 9_000;

export function pushes(subject: Subject): void {
  const newDevice = async (tenant_id: TenantId): Promise<DeviceId> => {
    const device_id = unique<DeviceId>('dev');
    await subject().a.devices.hello({ tenant_id, device_id, name: '', caps: {}, token_id: 'tk' as TokenId, at: 1, max: 100 });
    return device_id;
  };
  const setting = async () => {
    const { tenant_id } = await newTenant(subject());
    const device_id = await newDevice(tenant_id);
    const row = (cursor: Cursor, more: Partial<PushLedgerRow> = {}): PushLedgerRow => ({
      ...flat,
      tenant_id,
      device_id,
      cursor,
      class: 'reply',
      state: 'pending',
      why: null,
      with_cursor: null,
      covers: cursor,
      provider: null,
      answer: null,
      attempts: 0,
      due_at: 100,
      decided_at: 50,
      sent_at: null,
      withdrawn_at: null,
      ...more,
    });
    const key = (cursor: Cursor) => ({ tenant_id, device_id, cursor });
    const first = (cursor: Cursor) => ({ ...key(cursor), lanes_before: 0 });
    const outcome = (cursor: Cursor, state: PushOutcome['state'], more: Partial<PushOutcome> = {}): PushOutcome => ({
      ...key(cursor),
      state,
      why: null,
      provider: 'fcm',
      answer: '200',
      attempted: true,
      due_at: 0,
      at: 300,
      ...more,
    });
    return { ...subject(), tenant_id, device_id, row, key, first, outcome };
  };

  test('stale tenants: the latest mark stands, a later one is not cleared, nobody of a tenant that is not there', async () => {
    const { a, b, tenant_id } = await setting();
    const mine = async (before: number) => (await b.pushStale.due(before, 1_000)).filter((one) => one.tenant_id === tenant_id);
    await a.pushStale.mark(tenant_id, 20);
    await b.pushStale.mark(tenant_id, 10);
    expect([await mine(19), await mine(20)]).toEqual([[], [{ tenant_id, at: 20 }]]);
    await a.pushStale.clear(tenant_id, 19);
    expect(await mine(20)).toHaveLength(1);
    await a.pushStale.clear(tenant_id, 20);
    expect(await mine(20)).toEqual([]);
    await a.pushStale.mark(unique<TenantId>('tn'), 1);
  });

  test('owed notes: each mark by itself, one that was made again later is not cleared, none of a tenant that is not there', async () => {
    const { a, b, tenant_id } = await setting();
    const mine = async (before: number) => (await b.pushOwed.due(before, 1_000)).filter((one) => one.tenant_id === tenant_id);
    await a.pushOwed.mark(tenant_id, 7, 20);
    await b.pushOwed.mark(tenant_id, 7, 10);
    await b.pushOwed.mark(tenant_id, 3, 30);
    expect(await mine(19)).toEqual([]);
    expect(await mine(30)).toEqual([
      { tenant_id, cursor: 7, at: 20 },
      { tenant_id, cursor: 3, at: 30 },
    ]);
    await a.pushOwed.clear({ tenant_id, cursor: 7, at: 19 });
    expect(await mine(30)).toHaveLength(2);
    await a.pushOwed.clear({ tenant_id, cursor: 7, at: 20 });
    expect(await mine(30)).toEqual([{ tenant_id, cursor: 3, at: 30 }]);
    await a.pushOwed.mark(unique<TenantId>('tn'), 1, 1);
  });

  describe('push targets', () => {
    test('register: in place of the last of its kind; null takes away; false for an unknown or revoked device', async () => {
      const { a, b, tenant_id, device_id } = await setting();
      const [one, two, topic] = [unique('fcm'), unique('fcm').repeat(80), unique('topic')];
      expect(await a.pushTargets.register(tenant_id, device_id, [{ kind: 'fcm', address: one }], 5)).toBe(true);
      const keys = { p256dh: 'P', auth: 'A' };
      await b.pushTargets.register(
        tenant_id,
        device_id,
        [
          { kind: 'fcm', address: two, keys },
          { kind: 'ntfy', address: topic },
        ],
        6,
      );
      const kept = await a.pushTargets.list(tenant_id, device_id);
      expect(kept.map(({ registration: _, ...row }) => row).sort((x, y) => (x.kind < y.kind ? -1 : 1))).toEqual([
        { tenant_id, device_id, kind: 'fcm', address: two, keys, registered_at: 6 },
        { tenant_id, device_id, kind: 'ntfy', address: topic, keys: null, registered_at: 6 },
      ]);
      await a.pushTargets.register(tenant_id, device_id, [{ kind: 'fcm', address: null }], 7);
      expect((await b.pushTargets.list(tenant_id)).map(({ kind }) => kind)).toEqual(['ntfy']);
      expect(await a.pushTargets.register(tenant_id, unique<DeviceId>('dev'), [{ kind: 'fcm', address: one }], 8)).toBe(false);
      await a.devices.revoke(tenant_id, device_id, 9);
      expect(await a.pushTargets.register(tenant_id, device_id, [{ kind: 'fcm', address: one }], 10)).toBe(false);
      expect(await a.pushTargets.list(tenant_id)).toEqual([]);
    });

    test('PSH5: an address belongs to the device that named it last, of any tenant; of many at once exactly one has it', async () => {
      const owners = await Promise.all(Array.from({ length: 8 }, () => setting()));
      for (let round = 0; round < 3; round++) {
        const address = unique('fcm');
        await Promise.all(
          owners.map(({ a, b, tenant_id, device_id }, n) =>
            (n % 2 ? a : b).pushTargets.register(tenant_id, device_id, [{ kind: 'fcm', address }], round),
          ),
        );
        const kept = await Promise.all(owners.map(({ a, tenant_id }) => a.pushTargets.list(tenant_id)));
        expect(kept.flat().filter((row) => row.address === address)).toHaveLength(1);
      }
    });

    test('drop: only the registration that the verdict is about', async () => {
      const { a, b, tenant_id, device_id } = await setting();
      const address = unique('fcm');
      await a.pushTargets.register(tenant_id, device_id, [{ kind: 'fcm', address }], 5);
      const [old] = await b.pushTargets.list(tenant_id);
      await a.pushTargets.register(tenant_id, device_id, [{ kind: 'fcm', address }], 6);
      expect(await b.pushTargets.drop(old!)).toBe(false);
      const [now] = await b.pushTargets.list(tenant_id);
      expect(now!.registration).not.toBe(old!.registration);
      expect(await a.pushTargets.drop(now!)).toBe(true);
      expect(await a.pushTargets.drop(now!)).toBe(false);
      expect(await a.pushTargets.list(tenant_id)).toEqual([]);
    });
  });

  test('push rules: one per device and lane, forgotten when it asks for nothing; the content is the tenant’s', async () => {
    const { a, b, tenant_id, device_id } = await setting();
    const quiet = { from: '22:00', to: '07:00', time_zone: 'Europe/Berlin' };
    const all = { tenant_id, device_id, chat_id: null, thread_id: null, muted_until: null, quiet };
    const lane = { tenant_id, device_id, ...flat, muted_until: 9, quiet: null };
    expect(await a.pushRules.set(all)).toBe(true);
    expect(await b.pushRules.set({ ...lane, muted_until: 8 })).toBe(true);
    expect(await a.pushRules.set(lane)).toBe(true);
    expect((await b.pushRules.list(tenant_id)).sort((x) => (x.chat_id === null ? -1 : 1))).toEqual([all, lane]);
    await a.pushRules.set({ ...all, quiet: null });
    expect(await b.pushRules.list(tenant_id)).toEqual([lane]);
    expect(await a.pushRules.set({ ...lane, device_id: unique<DeviceId>('dev') })).toBe(false);
    expect(await a.pushRules.content(tenant_id)).toBe('full');
    expect(await a.pushRules.setContent(tenant_id, 'ids')).toBe(true);
    expect(await b.pushRules.content(tenant_id)).toBe('ids');
    expect(await a.pushRules.setContent(unique<TenantId>('tn'), 'ids')).toBe(false);
  });

  test('push frames: noted once, undecided until all devices are, gone with their lane', async () => {
    const { a, b, tenant_id } = await setting();
    const lane = await newLane(subject(), tenant_id, flat.chat_id);
    const frame = (cursor: Cursor, more = {}) => ({
      ...flat,
      tenant_id,
      cursor,
      class: 'reply' as const,
      message_id: `m_${cursor}` as MessageId,
      picker_id: null,
      title: null,
      body: null,
      except_device_id: null,
      at: 40 + cursor,
      ...more,
    });
    await a.pushFrames.note([frame(3), frame(1), frame(2, lane), frame(4, { thread_id: 't_999' })]);
    await b.pushFrames.note([frame(3, { class: 'cron' })]);
    expect(await b.pushFrames.undecided(tenant_id)).toEqual([1, 2, 3].map((n) => ({ ...frame(n, n === 2 ? lane : {}), decided: false })));
    expect(await a.pushFrames.overdue(41, 100_000)).toContain(tenant_id);
    await a.pushFrames.decided(tenant_id, [1, 3]);
    expect(await a.pushFrames.overdue(41, 100_000)).not.toContain(tenant_id);
    expect((await b.pushFrames.undecided(tenant_id)).map(({ cursor }) => cursor)).toEqual([2]);
    expect((await b.pushFrames.get(tenant_id, [1, 2, 9])).map(({ cursor, decided }) => [cursor, decided])).toEqual([
      [1, true],
      [2, false],
    ]);
    await a.channels.remove(tenant_id, lane);
    expect(await b.pushFrames.get(tenant_id, [2])).toEqual([]);
  });

  describe('push ledger', () => {
    test('decide: of several decisions about one device and frame the first stands, whoever makes them', async () => {
      const { a, b, row, key, tenant_id } = await setting();
      const results = await Promise.all(
        Array.from({ length: 6 }, (_, n) => (n % 2 ? a : b).pushLedger.decide([row(1, { why: `${n}` }), row(2, { why: `${n}` })])),
      );
      expect(results.flat().sort((x, y) => x.cursor - y.cursor)).toEqual([key(1), key(2)]);
      expect(await a.pushLedger.of(tenant_id, [1, 2, 3])).toHaveLength(2);
      expect(await a.pushLedger.keysOf(tenant_id, [2, 3])).toEqual([key(2)]);
      expect(await a.pushLedger.decide([row(3, { device_id: unique<DeviceId>('dev') })])).toEqual([]);
    });

    test('claim: one at a time, and again when the claim has lapsed', async () => {
      const { a, b, row, key, first } = await setting();
      await a.pushLedger.decide([row(1), row(2, { state: 'skipped' })]);
      const claims = await Promise.all(Array.from({ length: 6 }, (_, n) => (n % 2 ? a : b).pushLedger.claim([key(1), key(2)], 100, 200)));
      expect(claims.flat()).toEqual([first(1)]);
      expect(await b.pushLedger.claim([key(1)], 199, 300)).toEqual([]);
      expect(await b.pushLedger.claim([key(1)], 200, 300)).toEqual([first(1)]);
    });

    test('claim: nothing for a device whose token is revoked or over, nor of a suspended tenant', async () => {
      const { a, b, tenant_id, row } = await setting();
      const pending = async (token_id: TokenId) => {
        const device_id = unique<DeviceId>('dev');
        const kind = { kind: 'device', device_id: null, agent_id: null, created_at: 1 } as const;
        await a.tokens.create({ tenant_id, token_id, hash: unique('h'), ...kind });
        await a.devices.hello({ tenant_id, device_id, name: '', caps: {}, token_id, at: 1, max: 100 });
        await a.pushLedger.decide([row(1, { device_id })]);
        return { tenant_id, device_id, cursor: 1 };
      };
      const [revoked, over, ends, stands] = ['tk1', 'tk2', 'tk3', 'tk4'] as TokenId[];
      const keys = [await pending(revoked!), await pending(over!), await pending(ends!), await pending(stands!)];
      await a.tokens.revoke(tenant_id, revoked!, 60);
      await a.tokens.expire(tenant_id, over!, 60);
      await a.tokens.expire(tenant_id, ends!, 500);
      await a.tenants.setState(tenant_id, 'suspended');
      expect(await b.pushLedger.claim(keys, 100, 200)).toEqual([]);
      await a.tenants.setState(tenant_id, 'active');
      expect((await b.pushLedger.claim(keys, 100, 200)).map(({ device_id }) => device_id).sort()).toEqual(
        [keys[2]!, keys[3]!].map(({ device_id }) => device_id).sort(),
      );
    });
    test('claim: of how many other lanes the device was pushed first, and has not come since', async () => {
      const { a, b, row, key, outcome, tenant_id, device_id } = await setting();
      const lanes = [await newLane(subject(), tenant_id), await newLane(subject(), tenant_id), flat];
      const order = [0, 1, 0, 2, 1, 2];
      await a.pushLedger.decide(order.map((lane, n) => row(n + 1, lanes[lane])));
      const before = async (cursor: number) => (await b.pushLedger.claim([key(cursor)], 100, 200))[0]?.lanes_before;
      const seen: (number | undefined)[] = [];
      for (const cursor of [1, 2, 3, 4, 5]) {
        seen.push(await before(cursor));
        await a.pushLedger.record([outcome(cursor, 'sent')]);
      }
      expect(seen).toEqual([0, 1, 0, 2, 1]);
      // What was taken back waits no more, nor what was sent before the device came.
      await a.pushLedger.withdrawn([key(1), key(3)], 350);
      expect(await before(6)).toBe(1);
      await b.devices.hello({ tenant_id, device_id, name: '', caps: {}, token_id: 'tk' as TokenId, at: 400, max: 9 });
      await a.pushLedger.decide([row(7, { decided_at: 450 })]);
      expect(await before(7)).toBe(0);
    });
    test('claim: nothing that was decided before the device came back, or was revoked', async () => {
      const { a, b, row, key, first, tenant_id, device_id } = await setting();
      await a.pushLedger.decide([row(1), row(2, { decided_at: 70 })]);
      await b.devices.hello({ tenant_id, device_id, name: '', caps: {}, token_id: 'tk' as TokenId, at: 60, max: 9 });
      expect(await a.pushLedger.claim([key(1), key(2)], 100, 200)).toEqual([first(2)]);
      await b.devices.revoke(tenant_id, device_id, 80);
      expect(await a.pushLedger.claim([key(1), key(2)], 300, 400)).toEqual([]);
    });

    test('PSH4: record: accepted moves last_pushed_cursor, never back; what was accepted stays so', async () => {
      const { a, b, row, key, outcome, tenant_id, device_id } = await setting();
      await a.pushLedger.decide([row(5, { covers: 7 }), row(3)]);
      await a.pushLedger.claim([key(5), key(3)], 100, 200);
      await b.pushLedger.record([outcome(5, 'sent')]);
      await a.pushLedger.record([outcome(3, 'sent', { at: 301 })]);
      expect((await a.devices.get(tenant_id, device_id))?.last_pushed_cursor).toBe(7);
      await a.pushLedger.record([outcome(5, 'failed', { answer: '500' })]);
      const rows = await b.pushLedger.of(tenant_id, [3, 5]);
      expect(rows.map(({ cursor, state, sent_at, attempts }) => [cursor, state, sent_at, attempts]).sort()).toEqual([
        [3, 'sent', 301, 1],
        [5, 'sent', 300, 1],
      ]);
    });

    test('due: what is to be tried again, and claims that lapsed', async () => {
      const { a, b, row, key, outcome, tenant_id } = await setting();
      await a.pushLedger.decide([row(1), row(2), row(3)]);
      await a.pushLedger.claim([key(1), key(2)], 100, 200);
      await a.pushLedger.record([outcome(2, 'pending', { why: 'UNAVAILABLE', due_at: 400 })]);
      const due = async (now: number) =>
        (await b.pushLedger.due(now, 100_000)).filter((one) => one.tenant_id === tenant_id).map(({ cursor }) => cursor);
      expect(await due(99)).toEqual([]);
      expect(await due(200)).toEqual([3, 1]);
      expect(await due(400)).toEqual([3, 1, 2]);
      expect((await a.pushLedger.of(tenant_id, [2]))[0]).toMatchObject({ state: 'pending', attempts: 1, why: 'UNAVAILABLE' });
    });

    test('fence: what waits is skipped, what is under way is counted', async () => {
      const { a, b, row, key, tenant_id, device_id, outcome } = await setting();
      const other = await newDevice(tenant_id);
      await a.pushLedger.decide([row(1), row(2), row(3), row(3, { device_id: other })]);
      await a.pushLedger.claim([key(1), key(2)], 100, 200);
      await a.pushLedger.record([outcome(1, 'sent')]);
      expect(await b.pushLedger.fence(tenant_id, device_id, 150)).toEqual({ under_way: 1, last_pushed_cursor: 1 });
      const rows = await a.pushLedger.of(tenant_id, [1, 2, 3]);
      expect(rows.map((one) => [one.cursor, one.device_id === other, one.state, one.why]).sort()).toEqual([
        [1, false, 'sent', null],
        [2, false, 'sending', null],
        [3, false, 'skipped', 'hello'],
        [3, true, 'pending', null],
      ]);
      expect((await b.pushLedger.fence(tenant_id, device_id, 200)).under_way).toBe(0);
    });

    test('release: those collapsed into one that does not go are pending again', async () => {
      const { a, b, row, key, tenant_id } = await setting();
      await a.pushLedger.decide([
        row(9, { covers: 9 }),
        row(7, { state: 'collapsed', with_cursor: 9 }),
        row(6, { state: 'collapsed', with_cursor: 5 }),
      ]);
      await b.pushLedger.release(key(9), 500);
      expect((await a.pushLedger.of(tenant_id, [7]))[0]).toMatchObject({ state: 'pending', with_cursor: null, covers: 7, due_at: 500 });
      expect((await a.pushLedger.of(tenant_id, [6]))[0]).toMatchObject({ state: 'collapsed' });
    });

    test('shown, withdrawn, explain', async () => {
      const { a, b, row, key, tenant_id, device_id } = await setting();
      await a.pushLedger.decide([
        row(1, { state: 'sent', sent_at: 5 }),
        row(2, { state: 'sent', sent_at: 6 }),
        row(3, { state: 'skipped', why: 'muted' }),
      ]);
      expect((await b.pushLedger.shown(tenant_id)).map(({ cursor }) => cursor).sort()).toEqual([1, 2]);
      await b.pushLedger.withdrawn([key(1)], later);
      await b.pushLedger.withdrawn([key(1)], later + 1);
      expect((await a.pushLedger.shown(tenant_id)).map(({ cursor }) => cursor)).toEqual([2]);
      const told = await a.pushLedger.explain(tenant_id, device_id, { cursor: 2, limit: 5 });
      expect(told).toEqual([row(2, { state: 'sent', sent_at: 6 }), row(1, { state: 'sent', sent_at: 5, withdrawn_at: later })]);
      expect(await a.pushLedger.explain(tenant_id, device_id, { limit: 1 })).toEqual([row(3, { state: 'skipped', why: 'muted' })]);
    });
  });

  test('push actions: each token once; the one who used it may ask again', async () => {
    const { a, b, tenant_id, device_id } = await setting();
    const picker_id = unique<PickerId>('pk');
    await a.pickers.open({
      ...flat,
      tenant_id,
      picker_id,
      type: 'picker.confirm',
      payload: {},
      turn_id: null,
      agent_id: null,
      agent_picker_id: null,
      state: 'open',
      value: null,
      answered_by: null,
      expires_at: null,
      created_at: 1,
    });
    const action = { tenant_id, hash: unique('h'), picker_id, device_id, expires_at: 100 };
    await a.pushActions.add([action, { ...action, hash: unique('h'), picker_id: unique<PickerId>('pk') }]);
    expect(await b.pushActions.use(tenant_id, action.hash, 'x', 100)).toBeUndefined();
    expect(await b.pushActions.find(tenant_id, action.hash, 'x', 50)).toEqual({ picker_id, device_id });
    const uses = await Promise.all(['x', 'y', 'z'].map((by) => a.pushActions.use(tenant_id, action.hash, by, 50)));
    expect(uses.filter((one) => one !== undefined)).toEqual([{ picker_id, device_id }]);
    const winner = ['x', 'y', 'z'][uses.findIndex((one) => one !== undefined)]!;
    expect(await b.pushActions.use(tenant_id, action.hash, winner, 60)).toEqual({ picker_id, device_id });
    expect(await a.pushActions.find(tenant_id, action.hash, 'nobody', 60)).toBeUndefined();
    expect(await b.pushActions.use(tenant_id, unique('h'), 'x', 50)).toBeUndefined();
  });
}
