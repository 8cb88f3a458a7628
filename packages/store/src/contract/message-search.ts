import type { MessageId, TenantId } from '@iris/protocol';
import { describe, expect, test } from '@jest/globals';
import { flat, message, newLane, newTenant, type Subject } from './clients.js';

export function search(subject: Subject): void {
  async function store(tenant_id: TenantId, texts: readonly string[]): Promise<MessageId[]> {
    const rows = texts.map((text, n) => message(tenant_id, { text, cursor: n + 1 }));
    await subject().a.messages.insert(rows.map((row) => ({ message: row })));
    return rows.map((row) => row.message_id);
  }
  const found = async (tenant_id: TenantId, text: string): Promise<MessageId[]> =>
    (await subject().b.messages.search(tenant_id, { text, limit: 50 })).rows.map((row) => row.message_id);

  describe('messages: search', () => {
    test('words, phrases, excluded ones, without regard to case and accents; newest first', async () => {
      const { tenant_id } = await newTenant(subject());
      const [a, b, c] = await store(tenant_id, ['Deploy the Service', 'the service is deployed', 'ÉCOLE über straße']);
      expect(await found(tenant_id, 'deploy')).toEqual([b, a]);
      expect(await found(tenant_id, 'service DEPLOY')).toEqual([b, a]);
      expect(await found(tenant_id, '"the service"')).toEqual([b, a]);
      expect(await found(tenant_id, '"deploy the"')).toEqual([a]);
      expect(await found(tenant_id, 'service -deployed')).toEqual([a]);
      expect(await found(tenant_id, 'ecole UBER')).toEqual([c]);
    });

    test('any script, inside sentences', async () => {
      const { tenant_id } = await newTenant(subject());
      const [zh, emoji, ru] = await store(tenant_id, ['今天天气很好', 'look 🦊here', 'Привет, МИР']);
      expect(await found(tenant_id, '天气')).toEqual([zh]);
      expect(await found(tenant_id, '🦊')).toEqual([emoji]);
      expect(await found(tenant_id, 'мир')).toEqual([ru]);
    });

    test('any text is a query; one that asks for nothing finds nothing', async () => {
      const { tenant_id } = await newTenant(subject());
      const [a] = await store(tenant_id, [`100% _real_ "quote" \\ it's`]);
      for (const text of ['', '   ', '-', '"', '""', '-x']) expect(await found(tenant_id, text)).toEqual([]);
      for (const text of ['100%', '_real_', '\\', "it's", '"quote', '%']) expect(await found(tenant_id, text)).toEqual([a]);
      for (const text of ['1%0', "'; --", '$1', '(', ':* & |', '\u{1f9ff}']) expect(await found(tenant_id, text)).toEqual([]);
    });

    test('of one lane, or of the tenant; limit and has_more; a snippet around the match', async () => {
      const { a } = subject();
      const { tenant_id } = await newTenant(subject());
      const other = await newTenant(subject());
      const lane = await newLane(subject(), tenant_id);
      const long = `${'padding '.repeat(100)}needle ${'🦊'.repeat(300)}`;
      const rows = [1, 2, 3].map((cursor) => message(tenant_id, { ...(cursor === 2 ? lane : flat), cursor, text: long }));
      await a.messages.insert([...rows, message(other.tenant_id, { text: long })].map((row) => ({ message: row })));
      const everywhere = await a.messages.search(tenant_id, { text: 'needle', limit: 3 });
      expect([everywhere.rows.map((row) => row.cursor), everywhere.has_more]).toEqual([[3, 2, 1], false]);
      const two = await a.messages.search(tenant_id, { text: 'needle', limit: 2 });
      expect([two.rows.map((row) => row.cursor), two.has_more]).toEqual([[3, 2], true]);
      const inLane = await a.messages.search(tenant_id, { text: 'needle', lane, limit: 3 });
      const { snippet, ...row } = inLane.rows[0]!;
      expect(row).toEqual(rows[1]);
      expect(inLane.rows).toHaveLength(1);
      expect(snippet).toContain('needle');
      expect([...snippet].length).toBeLessThanOrEqual(160);
      expect(snippet).not.toMatch(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/);
    });
  });
}
