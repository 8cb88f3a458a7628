import type { DeviceId, TenantId, TokenId } from '@iris/protocol';
import { describe, expect, test } from '@jest/globals';
import { newTenant, type Subject, unique } from './clients.js';

const hello = (tenant_id: TenantId, fields: Record<string, unknown> = {}) => ({
  tenant_id,
  device_id: unique<DeviceId>('dev'),
  name: 'Phone',
  caps: { min_protocol: 1 } as Record<string, unknown>,
  token_id: 'tk' as TokenId,
  at: 10,
  max: 100,
  ...fields,
});

export function devices(subject: Subject): void {
  describe('devices', () => {
    test('hello: makes the device, then refreshes it', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      const row = hello(tenant_id);
      const made = await a.devices.hello(row);
      const { at: _at, max: _max, ...kept } = row;
      const first = { ...kept, label: null, watermark: 0, last_pushed_cursor: 0, created_at: 10, last_seen_at: 10, revoked_at: null };
      expect(made).toEqual({ row: first, created: true });
      const again = await b.devices.hello({ ...row, name: 'New name', caps: { delta: true }, token_id: 'tk2' as TokenId, at: 20 });
      const second = { ...first, name: 'New name', caps: { delta: true }, token_id: 'tk2', last_seen_at: 20 };
      expect(again).toEqual({ row: second, created: false });
      expect(await a.devices.get(tenant_id, row.device_id)).toEqual(second);
      expect(await a.devices.list(tenant_id)).toEqual([second]);
    });

    test('setLabel: stays through a hello; null gives it up; unknown is undefined', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      const hello = { tenant_id, device_id: 'phone' as DeviceId, name: 'Own', caps: {}, token_id: 'tk' as TokenId, at: 10, max: 5 };
      await a.devices.hello(hello);
      expect(await b.devices.setLabel(tenant_id, hello.device_id, 'Kitchen')).toMatchObject({ name: 'Own', label: 'Kitchen' });
      await a.devices.hello({ ...hello, name: 'Other', at: 11 });
      expect(await b.devices.get(tenant_id, hello.device_id)).toMatchObject({ name: 'Other', label: 'Kitchen' });
      expect(await a.devices.setLabel(tenant_id, hello.device_id, null)).toMatchObject({ label: null });
      expect(await a.devices.setLabel(tenant_id, 'none' as DeviceId, 'x')).toBeUndefined();
    });

    test('hello: keys such as __proto__ in caps are data', async () => {
      const { a } = subject();
      const { tenant_id } = await newTenant(subject());
      const caps = JSON.parse('{"__proto__":{"polluted":true},"constructor":1}') as Record<string, unknown>;
      const row = hello(tenant_id, { caps });
      await a.devices.hello(row);
      const read = await a.devices.get(tenant_id, row.device_id);
      expect(JSON.stringify(Object.entries(read?.caps ?? {}).sort())).toBe(JSON.stringify(Object.entries(caps).sort()));
      expect(({} as Record<string, unknown>).polluted).toBeUndefined();
    });

    test('hello: over_quota when it is new and max stand that are not revoked; exact when many come at once', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      const rows = Array.from({ length: 12 }, () => hello(tenant_id, { max: 5 }));
      const results = await Promise.all(rows.map((row, n) => (n % 2 ? a : b).devices.hello(row)));
      expect(results.filter((result) => result === 'over_quota')).toHaveLength(7);
      const known = rows[results.findIndex((result) => result !== 'over_quota')]!;
      const refused = rows[results.indexOf('over_quota')]!;
      expect(await a.devices.hello({ ...known, at: 11 })).toMatchObject({ created: false });
      await a.devices.revoke(tenant_id, known.device_id, 12);
      expect(await b.devices.hello(refused)).toMatchObject({ created: true });
    });

    test('hello: revoked stays revoked', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      const row = hello(tenant_id);
      await a.devices.hello(row);
      expect(await a.devices.revoke(tenant_id, row.device_id, 11)).toBe(true);
      expect(await b.devices.revoke(tenant_id, row.device_id, 12)).toBe(true);
      expect(await b.devices.hello(row)).toBe('revoked');
      expect((await a.devices.get(tenant_id, row.device_id))?.revoked_at).toBe(11);
      expect(await a.devices.revoke(tenant_id, unique<DeviceId>('dev'), 11)).toBe(false);
    });

    test('confirm: many at once, of several tenants; watermarks only rise, unknown devices are passed over', async () => {
      const { a, b } = subject();
      const one = await newTenant(subject());
      const two = await newTenant(subject());
      const x = hello(one.tenant_id);
      const y = hello(two.tenant_id, { device_id: x.device_id });
      await a.devices.hello(x);
      await a.devices.hello(y);
      await b.devices.confirm([
        { tenant_id: one.tenant_id, device_id: x.device_id, cursor: 7, at: 30 },
        { tenant_id: one.tenant_id, device_id: x.device_id, cursor: 9, at: 31 },
        { tenant_id: two.tenant_id, device_id: y.device_id, cursor: 5, at: 32 },
        { tenant_id: two.tenant_id, device_id: unique<DeviceId>('dev'), cursor: 5, at: 32 },
      ]);
      await a.devices.confirm([{ tenant_id: one.tenant_id, device_id: x.device_id, cursor: 3, at: 29 }]);
      await a.devices.confirm([]);
      expect(await a.devices.get(one.tenant_id, x.device_id)).toMatchObject({ watermark: 9, last_seen_at: 31 });
      expect(await a.devices.get(two.tenant_id, y.device_id)).toMatchObject({ watermark: 5, last_seen_at: 32 });
    });
  });
}
