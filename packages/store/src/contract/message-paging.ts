import type { Lane, MessageId, TenantId } from '@iris/protocol';
import { describe, expect, test } from '@jest/globals';
import { fill, flat, message, newLane, newTenant, type Subject, unique } from './clients.js';

export function paging(subject: Subject): void {
  async function ids(
    tenant_id: TenantId,
    options: { before?: MessageId; limit: number },
    lane: Lane = flat,
  ): Promise<[MessageId[], boolean]> {
    const page = await subject().b.messages.page(tenant_id, lane, options);
    if (page === 'unknown_before') throw new Error(page);
    return [page.rows.map((row) => row.message_id), page.has_more];
  }

  describe('messages: page', () => {
    test('the newest before, oldest first, has_more exact, whatever the limit', async () => {
      const { a } = subject();
      const { tenant_id } = await newTenant(subject());
      // Stored in another order than their places.
      const stored = await fill(subject(), tenant_id, [5, 1, 4, 2, 3, 9, 7]);
      const order = [1, 3, 4, 2, 0, 6, 5].map((n) => stored[n]!);
      for (const limit of [1, 2, 3, 6, 7, 8, 200]) {
        const seen: MessageId[] = [];
        let before: MessageId | undefined;
        for (;;) {
          const [page, more] = await ids(tenant_id, { limit, ...(before === undefined ? {} : { before }) });
          seen.unshift(...page);
          expect(more).toBe(seen.length < order.length);
          if (!more) break;
          expect(page).toHaveLength(limit);
          before = page[0];
        }
        expect(seen).toEqual(order);
      }
      expect(await ids(tenant_id, { before: order[0]!, limit: 5 })).toEqual([[], false]);
      expect(await a.messages.page(unique<TenantId>('tn'), flat, { limit: 5 })).toEqual({ rows: [], has_more: false });
    });

    test('owed ones come last, in the order they came, and move to their place when they get it', async () => {
      const { a } = subject();
      const { tenant_id } = await newTenant(subject());
      const [x, y] = await fill(subject(), tenant_id, [null, null]);
      const [p, q] = await fill(subject(), tenant_id, [1, 4]);
      expect(await ids(tenant_id, { limit: 9 })).toEqual([[p, q, x, y], false]);
      expect(await ids(tenant_id, { before: y!, limit: 2 })).toEqual([[q, x], true]);
      expect(await ids(tenant_id, { before: x!, limit: 9 })).toEqual([[p, q], false]);
      expect(await ids(tenant_id, { before: q!, limit: 9 })).toEqual([[p], false]);
      await a.messages.setCursors([{ tenant_id, message_id: y!, cursor: 2 }]);
      expect(await ids(tenant_id, { limit: 9 })).toEqual([[p, y, q, x], false]);
      expect(await ids(tenant_id, { before: q!, limit: 9 })).toEqual([[p, y], false]);
    });

    test('before a deleted one works by its place, also one that was never stored or got its cursor later', async () => {
      const { a } = subject();
      const { tenant_id } = await newTenant(subject());
      const [p, q, r, s] = await fill(subject(), tenant_id, [1, 2, 3, null]);
      const running = unique<MessageId>('m');
      await a.messages.remove(tenant_id, flat, [q!, running, s!], 9);
      expect(await ids(tenant_id, { before: q!, limit: 9 })).toEqual([[p], false]);
      expect(await ids(tenant_id, { before: running, limit: 9 })).toEqual([[p, r], false]);
      expect(await ids(tenant_id, { before: s!, limit: 9 })).toEqual([[p, r], false]);
      await a.messages.setCursors([{ tenant_id, message_id: s!, cursor: 4 }]);
      const [later] = await fill(subject(), tenant_id, [5]);
      expect(await ids(tenant_id, { before: s!, limit: 9 })).toEqual([[p, r], false]);
      expect(await ids(tenant_id, { before: running, limit: 9 })).toEqual([[p, r], false]);
      expect(await ids(tenant_id, { limit: 2 })).toEqual([[r, later], true]);
      await a.messages.remove(tenant_id, flat, [p!, r!], 9);
      expect(await ids(tenant_id, { limit: 9 })).toEqual([[later], false]);
      expect(await ids(tenant_id, { before: later!, limit: 9 })).toEqual([[], false]);
    });

    test('places: where each that stands is, in whatever lane; not those that were deleted, never were, or are another tenant’s', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      const other = await newTenant(subject());
      const lane = await newLane(subject(), tenant_id, flat.chat_id);
      const [placed, owed, gone] = await fill(subject(), tenant_id, [7, null, 8]);
      const [threaded] = await fill(subject(), tenant_id, [9], lane);
      const [foreign] = await fill(subject(), other.tenant_id, [1]);
      await a.messages.remove(tenant_id, flat, [gone!], 9);
      const asked = [threaded!, placed!, placed!, owed!, gone!, foreign!, unique<MessageId>('m')];
      expect(await b.messages.places(tenant_id, asked)).toEqual(
        new Map([
          [placed, { ...flat, cursor: 7, own_id: null }],
          [owed, { ...flat, cursor: null, own_id: null }],
          [threaded, { ...lane, cursor: 9, own_id: null }],
        ]),
      );
      const named = unique<MessageId>('m');
      await a.messages.insert([{ message: { ...message(tenant_id), message_id: named, own_id: 'mine' } }]);
      expect((await b.messages.places(tenant_id, [named])).get(named)?.own_id).toBe('mine');
      expect(await b.messages.places(tenant_id, [])).toEqual(new Map());
    });

    test('unknown_before: an id of no lane, of another lane, of another tenant', async () => {
      const { a } = subject();
      const { tenant_id } = await newTenant(subject());
      const other = await newTenant(subject());
      const lane = await newLane(subject(), tenant_id);
      const inside = await newLane(subject(), tenant_id, flat.chat_id);
      const [elsewhere] = await fill(subject(), tenant_id, [1], lane);
      const [threaded] = await fill(subject(), tenant_id, [2], inside);
      const [foreign] = await fill(subject(), other.tenant_id, [1]);
      for (const before of [elsewhere!, threaded!, foreign!, unique<MessageId>('m')]) {
        expect(await a.messages.page(tenant_id, flat, { before, limit: 5 })).toBe('unknown_before');
      }
      expect(await ids(tenant_id, { limit: 5 }, inside)).toEqual([[threaded], false]);
      expect(await ids(tenant_id, { limit: 5 }, flat)).toEqual([[], false]);
    });
  });
}
