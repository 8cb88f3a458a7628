import { randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { filesystemMedia, type MediaStore, s3Media } from '@iris/media';
import { silentLog, systemClock } from '@iris/runtime';
import type { MediaRow } from '@iris/store';
import { type Cluster, type ClusterTenant, cluster, pull, sendBytes, sha256Of, type TestDevice, upload } from '@iris/testkit';
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { cleanMedia } from '../../apps/worker/src/media/clean.js';
import { noS3, s3ForTests } from '../contract/s3-servers.js';
import { scratch } from '../contract/servers.js';

jest.setTimeout(120_000);
const MiB = 1024 * 1024;
/** More than two parts, as S3 takes them. */
const size = 10 * MiB + 300_000;
const bytesOf = (count: number) => new Uint8Array(randomBytes(count));

interface Place {
  readonly set: Record<string, string>;
  /** A process of the test's own on the same place. */
  readonly media: MediaStore;
  /** How many of those that were begun have left something that is not a file. */
  unfinished(rows: readonly MediaRow[]): Promise<number>;
  end(): Promise<void>;
}
const places: [string, (() => Promise<Place>) | undefined][] = [
  [
    'a folder',
    async () => {
      const { dir, remove } = scratch('media-stores');
      const folder = join(dir, 'files');
      return {
        set: { media_dir: folder },
        media: filesystemMedia({ folder }),
        unfinished: async () => (await readdir(join(folder, 'tmp'))).length,
        end: async () => remove(),
      };
    },
  ],
  [
    noS3 === undefined ? 'S3' : `S3 ${noS3}`,
    noS3 === undefined
      ? async () => {
          const server = await s3ForTests();
          const media = s3Media({ url: server.url });
          const left = ({ tenant_id, object_id }: MediaRow) => media.resume(tenant_id, object_id!);
          return {
            set: { s3_url: server.url },
            media,
            unfinished: async (rows) => (await Promise.all(rows.map(left))).filter((one) => one !== undefined).length,
            end: () => server.end(),
          };
        }
      : undefined,
  ],
];

for (const [name, open] of places)
  (open === undefined ? describe.skip : describe)(`files in ${name}`, () => {
    let place: Place;
    let all: Cluster;
    beforeAll(async () => {
      place = await open!();
      // Nobody decodes here: what is looked at is looked at at once.
      all = await cluster({ edges: 1, sessions: 1, workers: 1, set: { ...place.set, media_clean_ms: 3_600_000 } });
    });
    afterAll(async () => {
      await all?.close();
      await place?.media.close();
      await place?.end();
    });

    const row = async (tenant: ClusterTenant, device: TestDevice, ref: string): Promise<MediaRow> =>
      (await all.store.media.byRef(tenant.tenant_id, device.device_id as never, ref))!;
    const stored = async ({ tenant_id, object_id }: MediaRow) =>
      object_id !== null && (await place.media.stat(tenant_id, object_id)) !== undefined;
    async function attach(device: TestDevice, ref: string) {
      const { type, payload } = await device.send(`with ${ref}`, { media_refs: [ref] });
      return {
        type,
        code: payload.code,
        message_id: payload.message_id as string,
        media_id: (payload.media as { media_id: string }[] | undefined)?.[0]?.media_id,
      };
    }
    /** As SIGKILL; another edge takes its place. */
    async function killEdge(tenant: ClusterTenant, ...devices: TestDevice[]) {
      await all.edges.at(-1)!.kill();
      await Promise.all(devices.map((device) => device.closed()));
      const edge = all.edges.length;
      await all.startEdge();
      for (const device of devices) await device.join(tenant.dial(edge));
    }

    // Twenty offsets, as a program: tests/load/media-kills.mjs.
    test('UPL9 UPL14: the edge is killed in mid-upload: nothing half stored is visible, and what is gone on with ends with the right hash', async () => {
      const tenant = await all.tenant();
      const edge = all.edges.length - 1;
      const [kept, plain] = [await tenant.join('kept', { edge }), await tenant.join('plain', { edge })];
      for (const [n, until] of [1, 5 * MiB + 1, size].entries()) {
        const bytes = bytesOf(size);
        const start = { media_ref: `mu_${n}`, kind: 'file', mime: 'a/b', size };
        expect((await kept.request('media.upload.start', { ...start, resume: true })).payload.offset).toBe(0);
        plain.say('media.upload.start', start);
        for (const device of [kept, plain]) {
          sendBytes(device, bytes.subarray(0, until));
          await device.request('ping', {});
        }
        await killEdge(tenant, kept, plain);
        for (const device of [kept, plain]) expect(await attach(device, `mu_${n}`)).toMatchObject({ type: 'error', code: 'not_found' });
        const again = await kept.request('media.upload.start', { ...start, resume: true });
        const offset = again.payload.offset as number;
        expect(offset).toBeLessThanOrEqual(until);
        sendBytes(kept, bytes.subarray(offset));
        const ends = [
          await kept.request('media.upload.end', { media_ref: `mu_${n}`, sha256: sha256Of(bytes) }),
          await upload(plain, `mu_${n}`, bytes),
        ];
        for (const { payload } of ends) expect(payload).toMatchObject({ ok: true, sha256: sha256Of(bytes) });
        for (const device of [kept, plain]) {
          const { media_id } = await attach(device, `mu_${n}`);
          expect(sha256Of((await pull(device, media_id!)).bytes)).toBe(sha256Of(bytes));
        }
      }
    });

    test('UPL15 DEL4: equal content is stored once, counted once, and goes with the last message that uses it', async () => {
      const tenant = await all.tenant();
      const edge = all.edges.length - 1;
      const [one, other] = [await tenant.join('one', { edge }), await tenant.join('other', { edge })];
      const bytes = bytesOf(6 * MiB);
      for (const device of [one, other]) expect(await upload(device, 'mu_same', bytes)).toMatchObject({ type: 'media.upload.ack' });
      const rows = [await row(tenant, one, 'mu_same'), await row(tenant, other, 'mu_same')];
      expect(rows[0]!.media_id).not.toBe(rows[1]!.media_id);
      expect(rows[0]!.object_id).toBe(rows[1]!.object_id);
      expect(await all.store.media.storedBytes(tenant.tenant_id)).toBe(bytes.length);
      const sent = [await attach(one, 'mu_same'), await attach(other, 'mu_same')];
      const lane = { chat_id: 'android:default' };
      await one.request('message.delete', { message_ids: [sent[0]!.message_id] }, lane);
      await cleanOnce();
      expect(await stored(rows[0]!)).toBe(true);
      expect((await pull(one, sent[0]!.media_id!)).first).toMatchObject({ type: 'error', payload: { code: 'not_found' } });
      expect(sha256Of((await pull(one, sent[1]!.media_id!)).bytes)).toBe(sha256Of(bytes));
      await one.request('message.delete', { message_ids: [sent[1]!.message_id] }, lane);
      expect((await pull(one, sent[1]!.media_id!)).first).toMatchObject({ type: 'error', payload: { code: 'not_found' } });
      await cleanOnce();
      expect(await stored(rows[0]!)).toBe(false);
      expect(await all.store.media.storedBytes(tenant.tenant_id)).toBe(0);
    });

    test('LIM12: bytes of a file, bytes stored, bytes of a day; what was given up counts no more', async () => {
      const tenant = await all.tenant({ file_bytes: 6 * MiB, stored_bytes: 11 * MiB, upload_bytes_per_day: 24 * MiB });
      const device = await tenant.join('phone', { edge: all.edges.length - 1 });
      const code = async (ref: string, count: number) => (await upload(device, ref, bytesOf(count))).payload.code;
      expect(await code('mu_large', 6 * MiB + 1)).toBe('media_too_large');
      expect(await code('mu_1', 6 * MiB)).toBeUndefined();
      expect(await code('mu_2', 6 * MiB)).toBe('media_too_large');
      expect(await code('mu_2', 5 * MiB)).toBeUndefined();
      const kept = await attach(device, 'mu_1');
      const gone = await attach(device, 'mu_2');
      await device.request('message.delete', { message_ids: [gone.message_id] }, { chat_id: 'android:default' });
      await cleanOnce();
      expect(await all.store.media.storedBytes(tenant.tenant_id)).toBe(6 * MiB);
      expect(await code('mu_3', 5 * MiB)).toBeUndefined();
      const again = await attach(device, 'mu_3');
      await device.request('message.delete', { message_ids: [again.message_id] }, { chat_id: 'android:default' });
      // 6 + 5 + 5 of the day's 24 are used, and there is room for what is stored.
      await cleanOnce();
      expect(await code('mu_4', 5 * MiB)).toBeUndefined();
      const last = await attach(device, 'mu_4');
      await device.request('message.delete', { message_ids: [last.message_id] }, { chat_id: 'android:default' });
      await cleanOnce();
      expect(await code('mu_5', 5 * MiB)).toBe('rate_limited');
      expect((await pull(device, kept.media_id!)).bytes.length).toBe(6 * MiB);
    });

    test('UPL9: what a killed edge left on its way, and what was sent for no message, goes; what a message names stays', async () => {
      const tenant = await all.tenant();
      const edge = all.edges.length - 1;
      const [one, other] = [await tenant.join('one', { edge }), await tenant.join('other', { edge })];
      await upload(one, 'mu_named', bytesOf(100));
      const { media_id } = await attach(one, 'mu_named');
      await upload(one, 'mu_loose', bytesOf(6 * MiB));
      const start = { media_ref: 'mu_way', kind: 'file', mime: 'a/b', size };
      await one.request('media.upload.start', { ...start, resume: true });
      other.say('media.upload.start', start);
      for (const device of [one, other]) {
        sendBytes(device, bytesOf(6 * MiB));
        await device.request('ping', {});
      }
      const rows = [await row(tenant, one, 'mu_loose'), await row(tenant, one, 'mu_way'), await row(tenant, other, 'mu_way')];
      // Something of both is stored: else nothing would be there to be cleaned.
      const begun = rows.slice(1);
      while ((await place.unfinished(begun)) < 2);
      await killEdge(tenant, one, other);
      // A worker for which all that is not named is late.
      await all.workers[0]!.kill();
      await all.startWorker({ media_loose_ms: 1, media_clean_ms: 100 });
      for (const { media_id: gone } of rows) while ((await all.store.media.get(tenant.tenant_id, gone)) !== undefined);
      while (await stored(rows[0]!));
      // Neither a multipart upload nor a file in the folder for what is unfinished is left.
      while ((await place.unfinished(begun)) > 0);
      expect(await all.store.media.storedBytes(tenant.tenant_id)).toBe(100);
      expect((await pull(one, media_id!)).bytes.length).toBe(100);
      expect(await attach(one, 'mu_loose')).toMatchObject({ type: 'error', code: 'not_found' });
    });

    /** What a worker does every minute, at once. */
    const cleanOnce = () =>
      cleanMedia(
        { store: all.store, media: place.media, clock: systemClock, log: silentLog, jobs: undefined as never },
        { media_loose_ms: 24 * 3_600_000, media_offered_ms: 24 * 3_600_000 },
      );
  });
