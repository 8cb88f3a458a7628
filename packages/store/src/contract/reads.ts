import type { ChatId, DeviceId, MessageId } from '@iris/protocol';
import { describe, expect, test } from '@jest/globals';
import { flat, newLane, newTenant, type Subject } from './clients.js';

const phone = 'phone' as DeviceId;
const m = (n: number): MessageId => `m_${n}` as MessageId;

export function readsAndReceipts(subject: Subject): void {
  describe('reads', () => {
    test('advance: forward only, per device and lane; the same place again is a retry; false without the lane', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      const lane = await newLane(subject(), tenant_id, flat.chat_id);
      const read = (cursor: number, more = {}) => ({ ...flat, tenant_id, device_id: phone, message_id: m(cursor), cursor, ...more });
      expect(await a.reads.advance(read(5))).toBe(true);
      expect(await b.reads.advance(read(5))).toBe(true);
      expect(await b.reads.advance(read(4))).toBe(false);
      expect(await a.reads.advance(read(2, { device_id: 'tablet' }))).toBe(true);
      expect(await a.reads.advance(read(1, lane))).toBe(true);
      expect(await a.reads.advance(read(7))).toBe(true);
      expect(await a.reads.advance(read(9, { chat_id: 'android:chan_99' as ChatId }))).toBe(false);
      const rows = await b.reads.list(tenant_id);
      expect(rows.sort((x, y) => x.cursor - y.cursor)).toEqual([read(1, lane), read(2, { device_id: 'tablet' }), read(7)]);
    });

    test('advance: of many at once the furthest stands', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      const cursors = [3, 9, 1, 7, 5, 8, 2, 6, 4];
      await Promise.all(
        cursors.map((cursor, n) => (n % 2 ? a : b).reads.advance({ ...flat, tenant_id, device_id: phone, message_id: m(cursor), cursor })),
      );
      expect(await a.reads.list(tenant_id)).toEqual([{ ...flat, tenant_id, device_id: phone, message_id: m(9), cursor: 9 }]);
    });
  });

  describe('receipts', () => {
    test('owed once per message, taken once, oldest first, each device its own', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      const owe = (n: number, device_id = phone) => ({ ...flat, tenant_id, device_id, message_id: m(n) });
      for (const n of [3, 1, 2, 1]) await a.receipts.owe(owe(n));
      await a.receipts.owe(owe(4, 'tablet' as DeviceId));
      await a.receipts.owe({ ...owe(5), chat_id: 'android:chan_99' as ChatId });
      const taken = await Promise.all([a.receipts.take(tenant_id, phone), b.receipts.take(tenant_id, phone)]);
      expect(taken.map((rows) => rows.length).sort()).toEqual([0, 3]);
      expect(taken.flat()).toEqual([3, 1, 2].map((n) => ({ ...flat, message_id: m(n) })));
      expect(await b.receipts.take(tenant_id, 'tablet' as DeviceId)).toEqual([{ ...flat, message_id: m(4) }]);
      expect(await a.receipts.take(tenant_id, phone)).toEqual([]);
    });

    test('what belongs to a lane goes with it', async () => {
      const { a } = subject();
      const { tenant_id } = await newTenant(subject());
      const lane = await newLane(subject(), tenant_id);
      await a.receipts.owe({ ...lane, tenant_id, device_id: phone, message_id: m(1) });
      await a.reads.advance({ ...lane, tenant_id, device_id: phone, message_id: m(1), cursor: 1 });
      await a.channels.remove(tenant_id, lane);
      expect(await a.receipts.take(tenant_id, phone)).toEqual([]);
      expect(await a.reads.list(tenant_id)).toEqual([]);
    });
  });
}
