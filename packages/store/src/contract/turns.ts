import type { ChatId, TurnId } from '@iris/protocol';
import { describe, expect, test } from '@jest/globals';
import { flat, message, newLane, newTenant, newTurn, queueTurn, type Subject, unique } from './clients.js';

const start = (agent_id: Parameters<ReturnType<Subject>['a']['turns']['startNext']>[2]['agent_id'], max_running = 100) => ({
  agent_id,
  max_running,
});

export function turns(subject: Subject): void {
  describe('turns', () => {
    test('queue: for a message that stands; idempotent by turn_id; rejects without its lane', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      const row = message(tenant_id);
      await a.messages.insert([{ message: row }]);
      const turn = newTurn(row, { kind: 'command' });
      const queued = await a.turns.queue(tenant_id, flat, turn);
      expect(queued).toMatchObject({ ...turn, ...flat, tenant_id, state: 'queued', attempt: 1, outcome: null });
      expect(await b.turns.queue(tenant_id, flat, { ...turn, kind: 'chat' })).toEqual(queued);
      expect(await a.turns.waiting(tenant_id, flat)).toBe(1);
      await expect(a.turns.queue(tenant_id, { ...flat, chat_id: 'android:chan_99' as ChatId }, newTurn(row))).rejects.toThrow();
      expect(await a.turns.get(tenant_id, unique<TurnId>('tn'))).toBeUndefined();
    });

    test('a turn’s way: queued, sent, running, ended; each step once', async () => {
      const { a, b } = subject();
      const { tenant_id, agent_id } = await newTenant(subject());
      const { turn_id } = await queueTurn(subject(), tenant_id);
      expect(await a.turns.accept(tenant_id, turn_id, { boot_id: 'b1', at: 5 })).toBeUndefined();
      expect(await a.turns.retry(tenant_id, turn_id, 'b0')).toBeUndefined();
      const started = await a.turns.startNext(tenant_id, flat, { ...start(agent_id), boot_id: 'b0' });
      expect(started).toMatchObject({ turn_id, state: 'sent', agent_id, boot_id: 'b0', attempt: 1 });
      expect(await b.turns.startNext(tenant_id, flat, start(agent_id))).toBeUndefined();
      expect(await b.turns.retry(tenant_id, turn_id, 'b1')).toMatchObject({ state: 'sent', boot_id: 'b1', attempt: 2 });
      expect(await a.turns.accept(tenant_id, turn_id, { boot_id: 'b1', at: 5 })).toBe('accepted');
      expect(await b.turns.accept(tenant_id, turn_id, { boot_id: 'b2', at: 6 })).toBe('already');
      expect(await a.turns.retry(tenant_id, turn_id, 'b3')).toBeUndefined();
      expect(await a.turns.get(tenant_id, turn_id)).toMatchObject({ state: 'running', boot_id: 'b1', accepted_at: 5 });
      await b.turns.requestStop(tenant_id, turn_id);
      expect(await a.turns.open(tenant_id)).toMatchObject([{ turn_id, stop_requested: true }]);
      const ended = await a.turns.end(tenant_id, turn_id, { outcome: 'completed', at: 7 });
      expect(ended).toMatchObject({ state: 'ended', outcome: 'completed', ended_at: 7 });
      expect(await b.turns.end(tenant_id, turn_id, { outcome: 'failed', at: 8 })).toBeUndefined();
      expect(await a.turns.accept(tenant_id, turn_id, { boot_id: 'b1', at: 9 })).toBe('ended');
      await a.turns.requestStop(tenant_id, turn_id);
      expect(await b.turns.get(tenant_id, turn_id)).toEqual(ended);
      expect(await a.turns.open(tenant_id)).toEqual([]);
      for (const unknown of [unique<TurnId>('tn')]) {
        expect(await a.turns.accept(tenant_id, unknown, { boot_id: 'b', at: 1 })).toBeUndefined();
        expect(await a.turns.end(tenant_id, unknown, { outcome: 'failed', at: 1 })).toBeUndefined();
      }
    });

    test('requeue: only what is sent; in its place, one attempt on, for whoever starts it next', async () => {
      const { a, b } = subject();
      const { tenant_id, agent_id } = await newTenant(subject());
      const first = await queueTurn(subject(), tenant_id);
      const second = await queueTurn(subject(), tenant_id);
      expect(await a.turns.requeue(tenant_id, first.turn_id)).toBeUndefined();
      await a.turns.startNext(tenant_id, flat, { ...start(agent_id), boot_id: 'b0' });
      expect(await b.turns.requeue(tenant_id, first.turn_id)).toMatchObject({ state: 'queued', attempt: 2, agent_id: null, boot_id: null });
      expect(await b.turns.requeue(tenant_id, first.turn_id)).toBeUndefined();
      expect(await a.turns.open(tenant_id)).toEqual([]);
      const next = unique<typeof agent_id>('ag');
      expect(await a.turns.startNext(tenant_id, flat, start(next))).toMatchObject({ turn_id: first.turn_id, agent_id: next, attempt: 2 });
      await a.turns.accept(tenant_id, first.turn_id, { boot_id: 'b', at: 5 });
      expect(await a.turns.requeue(tenant_id, first.turn_id)).toBeUndefined();
      await a.turns.end(tenant_id, first.turn_id, { outcome: 'completed', at: 6 });
      expect(await a.turns.requeue(tenant_id, first.turn_id)).toBeUndefined();
      expect(await a.turns.startNext(tenant_id, flat, start(next))).toMatchObject({ turn_id: second.turn_id, attempt: 1 });
    });

    test('a queued turn can be ended, and then never starts', async () => {
      const { a } = subject();
      const { tenant_id, agent_id } = await newTenant(subject());
      const first = await queueTurn(subject(), tenant_id);
      const second = await queueTurn(subject(), tenant_id);
      expect(await a.turns.end(tenant_id, first.turn_id, { outcome: 'cancelled', at: 4 })).toMatchObject({ state: 'ended' });
      expect(await a.turns.startNext(tenant_id, flat, start(agent_id))).toMatchObject({ turn_id: second.turn_id });
    });

    test('startNext: in order, one chat turn per lane; lanes are independent', async () => {
      const { a, b } = subject();
      const { tenant_id, agent_id } = await newTenant(subject());
      const lane = await newLane(subject(), tenant_id);
      const first = await queueTurn(subject(), tenant_id);
      const second = await queueTurn(subject(), tenant_id);
      const elsewhere = await queueTurn(subject(), tenant_id, {}, lane);
      expect(await a.turns.waitingLanes(tenant_id)).toEqual([flat, lane]);
      expect(await a.turns.startNext(tenant_id, flat, start(agent_id))).toMatchObject({ turn_id: first.turn_id });
      expect(await a.turns.startNext(tenant_id, lane, start(agent_id))).toMatchObject({ turn_id: elsewhere.turn_id });
      expect(await a.turns.waiting(tenant_id, flat)).toBe(1);
      expect(await a.turns.waitingLanes(tenant_id)).toEqual([flat]);
      expect((await b.turns.open(tenant_id)).map((turn) => turn.turn_id)).toEqual([first.turn_id, elsewhere.turn_id]);
      await b.turns.accept(tenant_id, first.turn_id, { boot_id: 'b', at: 1 });
      expect(await a.turns.startNext(tenant_id, flat, start(agent_id))).toBeUndefined();
      await b.turns.end(tenant_id, first.turn_id, { outcome: 'completed', at: 2 });
      expect(await a.turns.startNext(tenant_id, flat, start(agent_id))).toMatchObject({ turn_id: second.turn_id });
      expect(await a.turns.startNext(tenant_id, { ...flat, chat_id: 'android:chan_99' as ChatId }, start(agent_id))).toBeUndefined();
    });

    test('startNext: a command starts whatever runs, before chat turns, and holds none up', async () => {
      const { a } = subject();
      const { tenant_id, agent_id } = await newTenant(subject());
      const chat = await queueTurn(subject(), tenant_id);
      const command = await queueTurn(subject(), tenant_id, { kind: 'command' });
      expect(await a.turns.startNext(tenant_id, flat, start(agent_id))).toMatchObject({ turn_id: command.turn_id });
      expect(await a.turns.startNext(tenant_id, flat, start(agent_id))).toMatchObject({ turn_id: chat.turn_id });
      const another = await queueTurn(subject(), tenant_id, { kind: 'command' });
      expect(await a.turns.startNext(tenant_id, flat, start(agent_id, 0))).toMatchObject({ turn_id: another.turn_id });
    });

    test('startNext: at most max_running chat turns in the tenant, exact when many lanes start at once', async () => {
      const { a, b } = subject();
      const { tenant_id, agent_id } = await newTenant(subject());
      const lanes = await Promise.all(Array.from({ length: 8 }, () => newLane(subject(), tenant_id)));
      for (let round = 0; round < 8; round++) {
        for (const lane of lanes) await queueTurn(subject(), tenant_id, {}, lane);
        const started = await Promise.all(lanes.map((lane, n) => (n % 2 ? a : b).turns.startNext(tenant_id, lane, start(agent_id, 3))));
        expect(started.filter((turn) => turn !== undefined)).toHaveLength(3);
        const open = await a.turns.open(tenant_id);
        expect(open).toHaveLength(3);
        for (const { turn_id } of open) await a.turns.end(tenant_id, turn_id, { outcome: 'completed', at: 9 });
      }
    });

    test('startNext, accept and end: one winner when many try at once', async () => {
      const { a, b } = subject();
      const { tenant_id, agent_id } = await newTenant(subject());
      for (let round = 0; round < 5; round++) {
        const { turn_id } = await queueTurn(subject(), tenant_id);
        await queueTurn(subject(), tenant_id);
        const stores = [a, b, a, b, a, b];
        const started = await Promise.all(stores.map((store) => store.turns.startNext(tenant_id, flat, start(agent_id))));
        expect(started.flatMap((turn) => turn?.turn_id ?? [])).toEqual([turn_id]);
        const accepted = await Promise.all(stores.map((store, n) => store.turns.accept(tenant_id, turn_id, { boot_id: `b${n}`, at: n })));
        expect(accepted.filter((outcome) => outcome === 'accepted')).toHaveLength(1);
        expect(accepted.filter((outcome) => outcome === 'already')).toHaveLength(5);
        const ended = await Promise.all(stores.map((store) => store.turns.end(tenant_id, turn_id, { outcome: 'completed', at: 9 })));
        expect(ended.filter((turn) => turn !== undefined)).toHaveLength(1);
        const next = await a.turns.startNext(tenant_id, flat, start(agent_id));
        await a.turns.end(tenant_id, next!.turn_id, { outcome: 'completed', at: 9 });
      }
    });

    test('open, and of which tenants there are some', async () => {
      const { a } = subject();
      const one = await newTenant(subject());
      const two = await newTenant(subject());
      const ids = new Set<string>();
      for (const { tenant_id, agent_id } of [one, two]) {
        ids.add((await queueTurn(subject(), tenant_id)).turn_id);
        await a.turns.startNext(tenant_id, flat, start(agent_id));
      }
      const none = await newTenant(subject());
      const all = await a.turns.openTenants();
      for (const { tenant_id } of [one, two]) expect(all.filter((id) => id === tenant_id)).toHaveLength(1);
      expect(all).not.toContain(none.tenant_id);
      expect((await a.turns.open(one.tenant_id)).filter(({ turn_id }) => ids.has(turn_id))).toHaveLength(1);
      expect(await a.turns.open(none.tenant_id)).toEqual([]);
    });
  });
}
