import type { DeviceId, MediaId, ObjectId, TenantId } from '@iris/protocol';
import { describe, expect, test } from '@jest/globals';
import type { MediaRow } from '../rows.js';
import type { Content } from '../store.js';
import { flat, message, newTenant, type Subject, unique } from './clients.js';

const phone = 'phone' as DeviceId;
const plenty = { stored_bytes: Number.MAX_SAFE_INTEGER, day_bytes: Number.MAX_SAFE_INTEGER };
const content = (sha256: string, size = 10): Content => ({ object_id: unique<ObjectId>('ob'), size, sha256 });
const media = (tenant_id: TenantId, fields: Partial<MediaRow> = {}): MediaRow => ({
  tenant_id,
  media_id: unique<MediaId>('md'),
  media_ref: 'mu_1',
  device_id: phone,
  state: 'uploading',
  kind: 'image',
  mime: 'image/jpeg',
  size: 5_000_000_000,
  filename: 'a.jpg',
  sha256: '',
  details: { width: 3 },
  created_at: 10,
  object_id: unique<ObjectId>('ob'),
  processed: false,
  uploaded_sha256: null,
  ...fields,
});

export function mediaRows(subject: Subject): void {
  /** An upload that has come to its end. */
  async function uploaded(tenant_id: TenantId, sha256: string, fields: Partial<MediaRow> = {}): Promise<MediaRow> {
    const row = media(tenant_id, { media_ref: unique('mu'), size: 10, ...fields });
    expect(await subject().a.media.begin(row, plenty)).toBe('begun');
    const done = await subject().b.media.complete(tenant_id, row.media_id, { object_id: row.object_id!, size: row.size, sha256 });
    expect(done).toEqual({ ...row, state: 'uploaded', object_id: done!.object_id, sha256, uploaded_sha256: sha256 });
    return done!;
  }
  const removing = async (tenant_id: TenantId) =>
    (await subject().a.media.removing(100_000)).filter((one) => one.tenant_id === tenant_id).map(({ object_id }) => object_id);

  describe('media rows', () => {
    test('restart: the bytes begin anew elsewhere; what was begun before is removed and completes nothing', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      const row = media(tenant_id);
      await a.media.begin(row, plenty);
      const anew = unique<NonNullable<MediaRow['object_id']>>('ob');
      expect(await b.media.restart(tenant_id, row.media_id, anew)).toBe(true);
      expect(await a.media.get(tenant_id, row.media_id)).toEqual({ ...row, object_id: anew });
      expect(await removing(tenant_id)).toEqual([row.object_id]);
      const content = { size: 7, sha256: 'cd'.repeat(32) };
      expect(await a.media.complete(tenant_id, row.media_id, { ...content, object_id: row.object_id! })).toBeUndefined();
      expect(await a.media.complete(tenant_id, row.media_id, { ...content, object_id: anew })).toMatchObject({ object_id: anew });
      expect(await b.media.restart(tenant_id, row.media_id, unique<typeof anew>('ob'))).toBe(false);
      expect(await b.media.restart(tenant_id, unique('md'), anew)).toBe(false);
      expect(await a.media.get(tenant_id, row.media_id)).toMatchObject({ state: 'uploaded', object_id: anew });
    });

    test('begin, complete, get, byRef: each once per id; the newest of a name, of this device only', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      const first = media(tenant_id);
      expect(await a.media.begin(first, plenty)).toBe('begun');
      expect(await b.media.begin({ ...first, size: 1 }, plenty)).toBe('begun');
      expect(await b.media.get(tenant_id, first.media_id)).toEqual(first);
      const bytes = { object_id: first.object_id!, size: 7, sha256: 'ab'.repeat(32) };
      const done = await a.media.complete(tenant_id, first.media_id, bytes);
      expect(done).toEqual({ ...first, state: 'uploaded', size: 7, sha256: bytes.sha256, uploaded_sha256: bytes.sha256 });
      expect(await b.media.complete(tenant_id, first.media_id, { ...bytes, size: 8 })).toEqual(done);
      expect(await b.media.complete(tenant_id, unique('md'), bytes)).toBeUndefined();
      const second = media(tenant_id);
      await a.media.begin(second, plenty);
      await a.media.begin(media(tenant_id, { device_id: 'tablet' as DeviceId }), plenty);
      expect(await b.media.byRef(tenant_id, phone, 'mu_1')).toEqual(second);
      expect(await b.media.byRef(tenant_id, phone, 'mu_2')).toBeUndefined();
      expect(await a.media.get((await newTenant(subject())).tenant_id, first.media_id)).toBeUndefined();
      expect(await a.media.begin(media(unique<TenantId>('tn')), plenty)).toBe('no_tenant');
    });

    test('started over: what was on its way under the name goes, and its object with it', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      const [first, second] = [media(tenant_id, { size: 60 }), media(tenant_id, { size: 70 })];
      await a.media.begin(first, { ...plenty, stored_bytes: 100 });
      expect(await b.media.begin(second, { ...plenty, stored_bytes: 100 })).toBe('begun');
      expect(await a.media.get(tenant_id, first.media_id)).toBeUndefined();
      expect(await removing(tenant_id)).toEqual([first.object_id]);
      expect(await a.media.complete(tenant_id, first.media_id, content('x'))).toBeUndefined();
      await a.media.removed(tenant_id, first.object_id!);
      expect(await removing(tenant_id)).toEqual([]);
    });

    test('what is stored and on its way together stays within stored_bytes, also when many begin at once; a day has its own', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      await uploaded(tenant_id, 'aa');
      const begin = (n: number) =>
        (n % 2 ? a : b).media.begin(media(tenant_id, { media_ref: `mu_${n}`, size: 20 }), { stored_bytes: 75, day_bytes: 1_000 });
      const results = await Promise.all(Array.from({ length: 8 }, (_, n) => begin(n)));
      expect(results.filter((one) => one === 'begun')).toHaveLength(3);
      expect(results.filter((one) => one === 'full')).toHaveLength(5);
      expect(await a.media.storedBytes(tenant_id)).toBe(70);
      const later = (size: number, at: number) =>
        a.media.begin(media(tenant_id, { media_ref: unique('mu'), size, created_at: at }), { ...plenty, day_bytes: 100 });
      expect(await later(31, 20)).toBe('day_full');
      expect(await later(30, 20)).toBe('begun');
      expect(await later(1, 20)).toBe('day_full');
      expect(await later(100, 24 * 3_600_000)).toBe('begun');
    });

    test('equal content of a tenant is stored once, whoever comes first', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      const other = await newTenant(subject());
      const rows = Array.from({ length: 6 }, () => media(tenant_id, { media_ref: unique('mu'), size: 10 }));
      for (const row of rows) await a.media.begin(row, plenty);
      const done = await Promise.all(
        rows.map((row, n) =>
          (n % 2 ? a : b).media.complete(tenant_id, row.media_id, { object_id: row.object_id!, size: 10, sha256: 'same' }),
        ),
      );
      const standing = new Set(done.map((row) => row!.object_id));
      expect(standing.size).toBe(1);
      expect(await a.media.storedBytes(tenant_id)).toBe(10);
      expect((await removing(tenant_id)).sort()).toEqual(
        rows
          .map((row) => row.object_id)
          .filter((id) => !standing.has(id))
          .sort(),
      );
      expect((await uploaded(other.tenant_id, 'same')).object_id).not.toBe([...standing][0]);
      // The object goes with the last file that has it.
      await a.media.remove(
        tenant_id,
        rows.slice(1).map(({ media_id }) => media_id),
      );
      expect(await removing(tenant_id)).not.toContain([...standing][0]);
      await b.media.remove(tenant_id, [rows[0]!.media_id]);
      expect(await removing(tenant_id)).toContain([...standing][0]);
      expect((await uploaded(tenant_id, 'same')).object_id).not.toBe([...standing][0]);
    });

    test('describe: type, details and, if given, other bytes in the place of the old; not while it is on its way', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      const row = await uploaded(tenant_id, 'original');
      const what = { kind: 'image', mime: 'image/png', details: { width: 4 } };
      expect(await b.media.describe(tenant_id, row.media_id, what)).toEqual({ ...row, ...what, processed: true });
      const stripped = content('stripped', 8);
      const next = await a.media.describe(tenant_id, row.media_id, what, stripped);
      expect(next).toEqual({ ...row, ...what, ...stripped, processed: true });
      expect(await b.media.get(tenant_id, row.media_id)).toEqual(next);
      expect(await removing(tenant_id)).toEqual([row.object_id]);
      const twin = await uploaded(tenant_id, 'original again');
      expect((await a.media.describe(tenant_id, twin.media_id, what, content('stripped', 8)))?.object_id).toBe(stripped.object_id);
      await a.media.attach(tenant_id, [row.media_id]);
      expect(await a.media.describe(tenant_id, row.media_id, what)).toMatchObject({ ...what, state: 'attached' });
      const begun = media(tenant_id);
      await a.media.begin(begun, plenty);
      expect(await a.media.describe(tenant_id, begun.media_id, what)).toBeUndefined();
      expect(await a.media.describe(tenant_id, unique('md'), what)).toBeUndefined();
    });

    test('insert: a file that is whole, once', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      const thumb = content('thumb', 3);
      const row = media(tenant_id, { state: 'uploaded', media_ref: null, device_id: null, ...thumb });
      expect(await a.media.insert(row, thumb)).toBe(true);
      expect(await b.media.insert(row, thumb)).toBe(false);
      expect(await b.media.get(tenant_id, row.media_id)).toEqual(row);
      expect(await a.media.insert(media(unique<TenantId>('tn')), thumb)).toBe(false);
    });

    test('attach: all or none, once, one winner; the same `by` again is true', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      const rows = [await uploaded(tenant_id, '1'), await uploaded(tenant_id, '2'), await uploaded(tenant_id, '3')];
      const begun = media(tenant_id);
      await a.media.begin(begun, plenty);
      const [x, y, z] = rows.map((row) => row.media_id);
      expect(await a.media.attach(tenant_id, [x!, unique('md')], 'k1')).toBe(false);
      expect(await a.media.attach(tenant_id, [x!, begun.media_id], 'k1')).toBe(false);
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

    test('show: as often as an agent likes; never less than it was', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      const [one, two] = [await uploaded(tenant_id, '1'), await uploaded(tenant_id, '2')];
      const begun = media(tenant_id);
      await a.media.begin(begun, plenty);
      expect(await a.media.show(tenant_id, [one.media_id, begun.media_id], 'offered')).toBe(false);
      expect(await a.media.show(tenant_id, [one.media_id, two.media_id], 'offered')).toBe(true);
      expect(await b.media.show(tenant_id, [one.media_id], 'attached')).toBe(true);
      expect(await b.media.show(tenant_id, [one.media_id], 'offered')).toBe(true);
      expect((await a.media.get(tenant_id, one.media_id))?.state).toBe('attached');
      expect((await a.media.get(tenant_id, two.media_id))?.state).toBe('offered');
    });

    test('with the last message that names it, a file is unused, and goes; one that a message names stays', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      const [file, kept] = [await uploaded(tenant_id, 'file'), await uploaded(tenant_id, 'kept')];
      await a.media.attach(tenant_id, [file.media_id, kept.media_id]);
      const both = message(tenant_id, { media: [{ media_id: file.media_id }, { media_id: kept.media_id }] });
      const one = message(tenant_id, { media: [{ media_id: kept.media_id }] });
      await a.messages.insert([{ message: both }, { message: one }]);
      await b.messages.remove(tenant_id, flat, [both.message_id], 9);
      expect((await a.media.get(tenant_id, file.media_id))?.state).toBe('unused');
      expect(await a.media.show(tenant_id, [file.media_id], 'attached')).toBe(false);
      const stale = (await b.media.stale({ loose_before: 0, offered_before: 0, limit: 100_000 })).filter(
        (row) => row.tenant_id === tenant_id,
      );
      expect(stale).toEqual([{ tenant_id, media_id: file.media_id }]);
      await b.media.remove(tenant_id, [file.media_id, kept.media_id, unique('md')]);
      expect(await a.media.get(tenant_id, file.media_id)).toBeUndefined();
      expect(await removing(tenant_id)).toEqual([file.object_id]);
      expect((await a.media.get(tenant_id, kept.media_id))?.state).toBe('attached');
    });

    test('usage counts files that were whole, also when they are gone; an upload that came to nothing was none', async () => {
      const { a, b } = subject();
      const { tenant_id } = await newTenant(subject());
      const days = () => b.usage.days(tenant_id, '1970-01-01', '1970-01-01');
      const [one, two] = [await uploaded(tenant_id, 'one'), await uploaded(tenant_id, 'two')];
      const begun = media(tenant_id);
      await a.media.begin(begun, plenty);
      const counted = [
        { day: '1970-01-01', user_messages: 0, agent_messages: 0, turns: 0, media_files: 2, media_bytes: one.size + two.size },
      ];
      expect(await days()).toEqual(counted);
      await a.media.remove(tenant_id, [one.media_id, begun.media_id]);
      await b.media.remove(tenant_id, [one.media_id]);
      expect(await days()).toEqual(counted);
    });

    test('stale: what was begun, uploaded or offered too long ago, oldest first', async () => {
      const { a } = subject();
      const { tenant_id } = await newTenant(subject());
      const at = (created_at: number, sha256: string) => uploaded(tenant_id, sha256, { created_at });
      const [old, young, offered, attached] = [await at(50, '1'), await at(200, '2'), await at(60, '3'), await at(40, '4')];
      const begun = media(tenant_id, { created_at: 30 });
      await a.media.begin(begun, plenty);
      await a.media.show(tenant_id, [offered.media_id], 'offered');
      await a.media.attach(tenant_id, [attached.media_id]);
      const stale = async (loose_before: number, offered_before: number) =>
        (await a.media.stale({ loose_before, offered_before, limit: 100_000 }))
          .filter((row) => row.tenant_id === tenant_id)
          .map(({ media_id }) => media_id);
      expect(await stale(100, 0)).toEqual([begun.media_id, old.media_id]);
      expect(await stale(0, 100)).toEqual([offered.media_id]);
      expect(await stale(300, 300)).toEqual([begun.media_id, old.media_id, offered.media_id, young.media_id]);
    });
  });
}
