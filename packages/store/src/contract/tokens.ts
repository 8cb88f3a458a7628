import type { DeviceId, TenantId, TokenId } from '@iris/protocol';
import { describe, expect, test } from '@jest/globals';
import type { NewToken } from '../store.js';
import { newTenant, type Subject, unique } from './clients.js';

const token = (tenant_id: TenantId, created_at: number): NewToken => ({
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
    test('find and get: by tenant and hash, or id, never in another tenant', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      const other = await newTenant(subject());
      const row = token(tenant_id, 5);
      await a.tokens.create(row);
      expect(await b.tokens.find(tenant_id, row.hash)).toEqual({ ...row, role: null, label: '', expires_at: null, revoked_at: null });
      expect(await b.tokens.find(other.tenant_id, row.hash)).toBeUndefined();
      expect(await b.tokens.find(tenant_id, 'unknown')).toBeUndefined();
      expect(await b.tokens.get(tenant_id, row.token_id)).toEqual(await a.tokens.find(tenant_id, row.hash));
      expect(await b.tokens.get(other.tenant_id, row.token_id)).toBeUndefined();
      expect(await b.tokens.get(tenant_id, unique<TokenId>('tk'))).toBeUndefined();
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

    test('create: an administrator’s has a role, a label and an end; expire: the earlier end stands', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      const row = { ...token(tenant_id, 5), kind: 'admin', device_id: null, role: 'read-only', label: 'for ä', expires_at: 90 } as const;
      await a.tokens.create(row);
      expect(await b.tokens.find(tenant_id, row.hash)).toEqual({ ...row, revoked_at: null });
      expect(await b.tokens.expire(tenant_id, row.token_id, 100)).toBe(true);
      expect((await a.tokens.find(tenant_id, row.hash))?.expires_at).toBe(90);
      expect(await b.tokens.expire(tenant_id, row.token_id, 80)).toBe(true);
      expect((await a.tokens.list(tenant_id)).map(({ expires_at }) => expires_at)).toEqual([80]);
      expect(await a.tokens.expire(tenant_id, unique<TokenId>('tk'), 80)).toBe(false);
      const other = await newTenant(subject());
      expect(await a.tokens.expire(other.tenant_id, row.token_id, 1)).toBe(false);
    });

    test('pairings: a code is used once, by one of many, before its end', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      const code = { tenant_id, code_hash: unique('code'), label: 'my phone', created_at: 10, expires_at: 20 };
      await a.pairings.create(code);
      await expect(a.pairings.create(code)).rejects.toThrow();
      await expect(a.pairings.create({ ...code, tenant_id: unique<TenantId>('tn'), code_hash: unique('code') })).rejects.toThrow();
      const both = await Promise.all([a, b].map((store, n) => store.pairings.use(code.code_hash, `device${n}` as DeviceId, 19)));
      expect(both.filter((row) => row !== undefined)).toHaveLength(1);
      expect(both.find((row) => row !== undefined)).toEqual({ ...code, used_by: expect.stringMatching(/^device[01]$/) });
      expect(await a.pairings.use(code.code_hash, 'device0' as DeviceId, 19)).toBeUndefined();
      const late = { ...code, code_hash: unique('code') };
      await a.pairings.create(late);
      expect(await b.pairings.use(late.code_hash, 'x' as DeviceId, 20)).toBeUndefined();
      expect(await b.pairings.use('never', 'x' as DeviceId, 1)).toBeUndefined();
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
