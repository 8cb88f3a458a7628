import type { Lane, MessageId, TenantId } from '@iris/protocol';
import { describe, expect, test } from '@jest/globals';
import { flat, message, newLane, newTenant, type Subject } from './clients.js';

export function search(subject: Subject): void {
  async function store(tenant_id: TenantId, texts: readonly string[], lane: Lane = flat): Promise<MessageId[]> {
    const rows = texts.map((text, n) => message(tenant_id, { ...lane, text, cursor: n + 1 }));
    await subject().a.messages.insert(rows.map((row) => ({ message: row })));
    return rows.map((row) => row.message_id);
  }
  const found = async (tenant_id: TenantId, text: string, lane?: Lane): Promise<MessageId[]> => {
    const options = { text, limit: 50, ...(lane === undefined ? {} : { lane }) };
    return (await subject().b.messages.search(tenant_id, options)).rows.map((row) => row.message_id);
  };
  /** Of each text, which of the queries find it: a text may say in how many languages it is written. */
  async function hits(texts: Record<string, string>, queries: Record<string, readonly string[]>): Promise<void> {
    const { tenant_id } = await newTenant(subject());
    const ids = await store(tenant_id, Object.values(texts));
    const names = new Map(Object.keys(texts).map((name, n) => [ids[n], name]));
    for (const [query, wanted] of Object.entries(queries)) {
      const seen = (await found(tenant_id, query)).map((id) => names.get(id));
      expect({ query, found: seen.sort() }).toEqual({ query, found: [...wanted].sort() });
    }
  }

  describe('messages: search', () => {
    test('SEA1: words, phrases, excluded words and phrases, parts of words', () =>
      hits(
        { a: 'Deploy the Service', b: 'the service is deployed', c: 'redeploy now, with --force' },
        {
          deploy: ['a', 'b', 'c'],
          'service DEPLOY': ['a', 'b'],
          '"the service"': ['a', 'b'],
          '"deploy the"': ['a'],
          '“deploy the”': ['a'],
          'service -deployed': ['a'],
          'deploy -"the service"': ['c'],
          'ploy -service': ['c'],
          '--force': ['c'],
          eploye: ['b'],
          'deploy -deploy': [],
        },
      ));

    test('SEA1: case and accents do not matter, in any alphabet', () =>
      hits(
        {
          fr: 'ÉCOLE française, œuvre',
          de: 'Über die Straße nach STRASSBURG',
          tr: 'İSTANBUL ılık',
          pl: 'Łódź, żółć',
          el: 'Ο ΣΟΦΌΣ Οδυσσέας',
          ru: 'Всё ещё ПРИВЕТ, Йод',
          ar: 'السَّلامُ عَلَيْكُم إلى آخر الأمر',
          he: 'שָׁלוֹם עוֹלָם',
          wide: 'ＦＵＬＬ　ｗｉｄｔｈ ｶﾞｷﾞ',
          nfd: 'cafe\u0301 re\u0301sume\u0301',
          vi: 'Tiếng Việt, Đà Nẵng',
        },
        {
          'ecole OEUVRE': ['fr'],
          école: ['fr'],
          'strasse uber': ['de'],
          STRASSE: ['de'],
          straß: ['de'],
          'istanbul ILIK': ['tr'],
          'lodz zolc': ['pl'],
          'σοφος οδυσσεας': ['el'],
          ΣΟΦΟΣ: ['el'],
          'еще привет': ['ru'],
          'السلام عليكم': ['ar'],
          'الى اخر الامر': ['ar'],
          'שלום עולם': ['he'],
          'full WIDTH': ['wide'],
          ガギ: ['wide'],
          'café résumé': ['nfd'],
          cafe: ['nfd'],
          'tieng viet da nang': ['vi'],
        },
      ));

    test('SEA1: scripts without spaces, one and two characters inside sentences, emoji', () =>
      hits(
        {
          zh: '今天天气很好，我们去公园散步吧。',
          ja: '東京の天気は晴れです。サーバーを再起動しました',
          ko: '오늘 날씨가 좋네요',
          th: 'วันนี้อากาศดีมาก',
          km: 'ថ្ងៃនេះអាកាសធាតុល្អ',
          my: 'ဒီနေ့ရာသီဥတုကောင်းတယ်',
          hi: 'आज मौसम अच्छा है',
          emoji: 'look 🦊here 👨‍👩‍👧 ❤️ 🇩🇪',
          rare: '𠮷野家で𝕌nicode',
        },
        {
          天气: ['zh'],
          気: ['ja'],
          公: ['zh'],
          '散步 公园': ['zh'],
          散园: [],
          天: ['zh', 'ja'],
          サーバー: ['ja'],
          ーバ: ['ja'],
          '天気 -再起動': [],
          날씨: ['ko'],
          늘: ['ko'],
          อากาศ: ['th'],
          ดี: ['th'],
          อากาส: [],
          អាកាស: ['km'],
          ရာသီ: ['my'],
          मौसम: ['hi'],
          मासम: [],
          '🦊': ['emoji'],
          '👨‍👩‍👧': ['emoji'],
          '❤': ['emoji'],
          '🇩🇪 look': ['emoji'],
          '🐻': [],
          𠮷: ['rare'],
          unicode: ['rare'],
        },
      ));

    test('SEA3: best first: in a row, whole words, beginnings of words, anywhere; the newer first among equals', async () => {
      const { tenant_id } = await newTenant(subject());
      const [row, words, starts, parts, newerWords, newest] = await store(tenant_id, [
        'a red fox ran',
        'the fox is red',
        'foxes and redwood',
        'outfoxed and tired',
        'red, said the fox',
        'foxtrot in redmond',
      ]);
      expect(await found(tenant_id, 'red fox')).toEqual([row, newerWords, words, newest, starts, parts]);
      expect(await found(tenant_id, 'fox')).toEqual([newerWords, words, row, newest, starts, parts]);
    });

    test('SEA5, C110: any text is a query; one that asks for nothing finds nothing', async () => {
      const { tenant_id } = await newTenant(subject());
      const [a, b] = await store(tenant_id, [`100% _real_ "quote" \\ it's team:foo`, `a <-> b`]);
      for (const text of ['', '   ', '"', '""', '-x', '-"x y"', '\u200b', '\u3000', '\0', '\u0301']) {
        expect(await found(tenant_id, text)).toEqual([]);
      }
      for (const text of ['100%', '_real_', '\\', "it's", 'it’s', '"quote', '%', 'team:foo', '(real)', 'real?!', 'quote"']) {
        expect({ text, found: await found(tenant_id, text) }).toEqual({ text, found: [a] });
      }
      for (const text of ['a <-> b', '<->', '-', '"a <-> b"']) expect(await found(tenant_id, text)).toEqual([b]);
      const nothing = ['1%0', "x'; DROP TABLE message; --", '$1x', ':* & |', '\u{1f9ff}', `'":*`, '&!', '%_', '\\\\', '\ud800', '\0x'];
      for (const text of [...nothing, '('.repeat(1024), '"'.repeat(1023), '-'.repeat(1024), 'a" OR 1=1 --', "E'\\x27'"]) {
        expect(await found(tenant_id, text)).toEqual([]);
      }
      expect(await found(tenant_id, 'real')).toEqual([a]);
    });

    test('SEA5: as many words as a query can hold', async () => {
      const { tenant_id } = await newTenant(subject());
      const words = Array.from({ length: 512 }, (_, n) => String.fromCodePoint(0x4e00 + n));
      const [all] = await store(tenant_id, [words.join(''), words.slice(1).join('')]);
      expect(await found(tenant_id, words.join(' '))).toEqual([all]);
      expect(
        await found(
          tenant_id,
          `${words[1]} ${words
            .slice(2, 300)
            .map((word) => `-${word}`)
            .join(' ')}`,
        ),
      ).toEqual([]);
    });

    test('SEA3, SEA4: of one lane, or of the tenant; limit and has_more; a snippet around the match', async () => {
      const { a } = subject();
      const { tenant_id } = await newTenant(subject());
      const other = await newTenant(subject());
      const lane = await newLane(subject(), tenant_id);
      const inside = await newLane(subject(), tenant_id, flat.chat_id);
      const long = `${'padding '.repeat(100)}needle ${'👨‍👩‍👧'.repeat(100)}`;
      const lanes = [flat, lane, flat, inside];
      const rows = lanes.map((place, n) =>
        message(tenant_id, { ...place, cursor: n + 1, text: long, role: n === 1 ? 'assistant' : 'user' }),
      );
      await a.messages.insert([...rows, message(other.tenant_id, { text: long })].map((row) => ({ message: row })));
      const ids = rows.map(({ message_id }) => message_id);
      const search = async (options: { lane?: Lane; limit: number }) => {
        const page = await a.messages.search(tenant_id, { text: 'needle', ...options });
        return [page.rows.map(({ message_id }) => message_id), page.has_more];
      };
      expect(await search({ limit: 4 })).toEqual([[ids[3], ids[2], ids[1], ids[0]], false]);
      expect(await search({ limit: 3 })).toEqual([[ids[3], ids[2], ids[1]], true]);
      expect(await search({ limit: 4, lane: flat })).toEqual([[ids[2], ids[0]], false]);
      expect(await search({ limit: 4, lane: inside })).toEqual([[ids[3]], false]);
      const { snippet, ...row } = (await a.messages.search(tenant_id, { text: 'needle', lane, limit: 3 })).rows[0]!;
      expect(row).toEqual({ message_id: ids[1], ...lane, role: 'assistant', ts: rows[1]!.ts });
      expect(snippet).toMatch(/^…(padding )+needle (👨‍👩‍👧)+…$/u);
      expect([...snippet].length).toBeLessThanOrEqual(160);
    });

    test('SEA6: from the moment it is stored, owed ones first; not from the moment it is deleted; a new text takes the place of the old', async () => {
      const { a } = subject();
      const { tenant_id } = await newTenant(subject());
      const [first, second] = await store(tenant_id, ['zebra one', 'zebra two']);
      const owed = message(tenant_id, { text: 'zebra three' });
      await a.messages.insert([{ message: owed }]);
      expect(await found(tenant_id, 'zebra')).toEqual([owed.message_id, second, first]);
      await a.messages.remove(tenant_id, flat, [second!], 9);
      expect(await found(tenant_id, 'zebra')).toEqual([owed.message_id, first]);
      await a.messages.replace({ ...owed, text: 'giraffe three', late: true });
      expect(await found(tenant_id, 'zebra')).toEqual([first]);
      expect(await found(tenant_id, 'giraffe')).toEqual([owed.message_id]);
      const lane = await newLane(subject(), tenant_id);
      await store(tenant_id, ['zebra in a channel'], lane);
      expect(await found(tenant_id, 'zebra')).toHaveLength(2);
      await a.channels.remove(tenant_id, lane);
      expect(await found(tenant_id, 'zebra')).toEqual([first]);
    });

    test('SEA1, SEA3: among many messages: what is common, rare, old, a part, or missing', async () => {
      const { a } = subject();
      const { tenant_id } = await newTenant(subject());
      const lane = await newLane(subject(), tenant_id);
      // Far more than are looked at one by one; the marks are at the far end.
      const texts = Array.from({ length: 2_600 }, (_, n) => (n % 7 === 0 ? `gamma ${n} overview` : `alpha beta ${n} view, 天気${n}`));
      for (const [n, text] of ['an Antikörper', 'ein Körper', 'Körperbau', '珍しい鸞', 'xq', 'view of the world', 'ω and 鸞 xq'].entries())
        texts[n] = text;
      const rows = texts.map((text, n) => message(tenant_id, { ...(n % 2 ? lane : flat), cursor: n + 1, text }));
      for (let n = 0; n < rows.length; n += 400) await a.messages.insert(rows.slice(n, n + 400).map((row) => ({ message: row })));
      const at = (...places: number[]) => places.map((n) => rows[n]!.message_id);
      const all = async (text: string, limit = 50, where?: Lane) => {
        const options = { text, limit, ...(where === undefined ? {} : { lane: where }) };
        const page = await subject().b.messages.search(tenant_id, options);
        return { ids: page.rows.map(({ message_id }) => message_id), more: page.has_more };
      };
      // Equal ones by place; the limit is the limit.
      const newest = texts.flatMap((text, n) => (text.startsWith('alpha') ? [n] : [])).reverse();
      expect(await all('alpha')).toEqual({ ids: at(...newest.slice(0, 50)), more: true });
      expect(await all('lph')).toEqual({ ids: at(...newest.slice(0, 50)), more: true });
      expect((await all('天気')).ids).toEqual(at(...newest.slice(0, 50)));
      // Whole words first, however old.
      expect(await all('körper')).toEqual({ ids: at(1, 2, 0), more: false });
      expect(await all('"ORPER"')).toEqual({ ids: at(2, 1, 0), more: false });
      expect((await all('view -beta -gamma')).ids).toEqual(at(5));
      expect((await all('view world')).ids).toEqual(at(5));
      expect((await all('鸞')).ids).toEqual(at(6, 3));
      expect((await all('xq')).ids).toEqual(at(6, 4));
      expect((await all('q')).ids).toEqual(at(6, 4));
      expect((await all('ω')).ids).toEqual(at(6));
      expect((await all('鸞 ω')).ids).toEqual(at(6));
      expect((await all('鸞', 50, lane)).ids).toEqual(at(3));
      expect((await all('xq', 50, lane)).ids).toEqual([]);
      expect(await all('never said')).toEqual({ ids: [], more: false });
      // Parts plenty, words few: 'over' is a part of every overview.
      const overviews = texts.flatMap((text, n) => (text.startsWith('gamma') ? [n] : [])).reverse();
      await a.messages.replace({ ...rows[0]!, text: 'it is over' });
      expect((await all('over')).ids).toEqual(at(0, ...overviews.slice(0, 49)));
      expect((await all('verv', overviews.length)).more).toBe(false);
      expect((await all('verv', overviews.length - 1)).more).toBe(true);
      // Gone from far back as well.
      await a.messages.remove(tenant_id, flat, at(6), 9);
      expect((await all('鸞')).ids).toEqual(at(3));
    }, 60_000);
  });
}
