import type { DeviceId, MediaId, TenantId } from '@iris/protocol';
import { describe, expect, test } from '@jest/globals';
import type { MediaRow } from '../rows.js';
import { newTenant, type Subject, unique } from './clients.js';

const phone = 'phone' as DeviceId;
const media = (tenant_id: TenantId, fields: Partial<MediaRow> = {}): MediaRow => ({
  tenant_id,
  media_id: unique<MediaId>('md'),
  media_ref: 'mu_1',
  device_id: phone,
  state: 'uploaded',
  kind: 'image',
  mime: 'image/jpeg',
  size: 5_000_000_000,
  filename: 'a.jpg',
  sha256: 'ab'.repeat(32),
  details: { width: 3 },
  created_at: 10,
  ...fields,
});

export function mediaRows(subject: Subject): void {
  describe('media rows', () => {
    test('insert, get, byRef: once per id; the newest of a name, of this device only', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      const first = media(tenant_id);
      expect(await a.media.insert(first)).toBe(true);
      expect(await b.media.insert({ ...first, size: 1 })).toBe(false);
      expect(await b.media.get(tenant_id, first.media_id)).toEqual(first);
      const second = media(tenant_id);
      await a.media.insert(second);
      await a.media.insert(media(tenant_id, { device_id: 'tablet' as DeviceId }));
      expect(await b.media.byRef(tenant_id, phone, 'mu_1')).toEqual(second);
      expect(await b.media.byRef(tenant_id, phone, 'mu_2')).toBeUndefined();
      expect(await a.media.get((await newTenant(subject())).tenant_id, first.media_id)).toBeUndefined();
      expect(await a.media.insert(media(unique<TenantId>('tn')))).toBe(false);
    });

    test('setDetails: takes the place of the old; the type only when given', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      const row = media(tenant_id);
      await a.media.insert(row);
      expect(await b.media.setDetails(tenant_id, row.media_id, { height: 4 })).toBe(true);
      expect(await a.media.get(tenant_id, row.media_id)).toEqual({ ...row, details: { height: 4 } });
      await b.media.setDetails(tenant_id, row.media_id, {}, 'image/png');
      expect(await a.media.get(tenant_id, row.media_id)).toMatchObject({ details: {}, mime: 'image/png' });
      expect(await a.media.setDetails(tenant_id, unique('md'), {})).toBe(false);
    });

    test('attach: all or none, once, one winner; the same `by` again is true', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      const rows = [media(tenant_id), media(tenant_id), media(tenant_id)];
      for (const row of rows) await a.media.insert(row);
      const [x, y, z] = rows.map((row) => row.media_id);
      expect(await a.media.attach(tenant_id, [x!, unique('md')], 'k1')).toBe(false);
      expect((await a.media.get(tenant_id, x!))?.state).toBe('uploaded');
      const results = await Promise.all(
        [0, 1, 2, 3].map((n) => (n % 2 ? a : b).media.attach(tenant_id, n % 2 ? [x!, y!] : [y!, x!], `k${n}`)),
      );
      expect(results.filter(Boolean)).toHaveLength(1);
      expect((await a.media.get(tenant_id, y!))?.state).toBe('attached');
      expect(await b.media.attach(tenant_id, [x!, y!], `k${results.indexOf(true)}`)).toBe(true);
      expect(await b.media.attach(tenant_id, [y!, z!], 'k9')).toBe(false);
      expect(await b.media.attach(tenant_id, [x!])).toBe(false);
      expect((await a.media.get(tenant_id, z!))?.state).toBe('uploaded');
      expect(await a.media.attach(tenant_id, [])).toBe(true);
    });

    test('remove: those named, of this tenant', async () => {
      const { a } = subject();
      const { tenant_id } = await newTenant(subject());
      const other = await newTenant(subject());
      const row = media(tenant_id);
      const twin = media(other.tenant_id, { media_id: row.media_id });
      for (const one of [row, twin]) await a.media.insert(one);
      await a.media.remove(tenant_id, [row.media_id, unique('md')]);
      expect(await a.media.get(tenant_id, row.media_id)).toBeUndefined();
      expect(await a.media.get(other.tenant_id, row.media_id)).toEqual(twin);
    });
  });
}
