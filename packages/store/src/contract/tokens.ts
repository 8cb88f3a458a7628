import type { DeviceId, TenantId, TokenId } from '@iris/protocol';
import { describe, expect, test } from '@jest/globals';
import type { TokenRow } from '../rows.js';
import { newTenant, type Subject, unique } from './clients.js';

const token = (tenant_id: TenantId, created_at: number): Omit<TokenRow, 'revoked_at'> => ({
  tenant_id,
  token_id: unique<TokenId>('tk'),
  kind: 'device',
  hash: unique('hash'),
  device_id: 'phone' as DeviceId,
  agent_id: null,
  created_at,
});

export function tokens(subject: Subject): void {
  describe('tokens', () => {
    test('find: by tenant and hash, never in another tenant', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      const other = await newTenant(subject());
      const row = token(tenant_id, 5);
      await a.tokens.create(row);
      expect(await b.tokens.find(tenant_id, row.hash)).toEqual({ ...row, revoked_at: null });
      expect(await b.tokens.find(other.tenant_id, row.hash)).toBeUndefined();
      expect(await b.tokens.find(tenant_id, 'unknown')).toBeUndefined();
    });

    test('create: rejects a second one of the same id or hash, and an unknown tenant', async () => {
      const { a } = subject();
      const { tenant_id } = await newTenant(subject());
      const row = token(tenant_id, 5);
      await a.tokens.create(row);
      await expect(a.tokens.create({ ...row, hash: unique('hash') })).rejects.toThrow();
      await expect(a.tokens.create({ ...row, token_id: unique<TokenId>('tk') })).rejects.toThrow();
      await expect(a.tokens.create(token(unique<TenantId>('tn'), 5))).rejects.toThrow();
      expect(await a.tokens.list(tenant_id)).toHaveLength(1);
    });

    test('revoke: found still, with the first time; a retry is true again, an unknown one false', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      const other = await newTenant(subject());
      const rows = [token(tenant_id, 6), token(tenant_id, 5)];
      for (const row of rows) await a.tokens.create(row);
      expect(await a.tokens.revoke(other.tenant_id, rows[0]!.token_id, 7)).toBe(false);
      expect(await a.tokens.revoke(tenant_id, rows[0]!.token_id, 7)).toBe(true);
      expect(await b.tokens.revoke(tenant_id, rows[0]!.token_id, 8)).toBe(true);
      expect((await a.tokens.find(tenant_id, rows[0]!.hash))?.revoked_at).toBe(7);
      expect((await a.tokens.list(tenant_id)).map((row) => [row.created_at, row.revoked_at])).toEqual([
        [5, null],
        [6, 7],
      ]);
    });
  });
}
