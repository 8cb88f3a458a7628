import { type Bus, subjects } from '@iris/bus';
import type { MediaStore } from '@iris/media';
import type { MediaId, ObjectId, SessionId, TenantId } from '@iris/protocol';
import { type Clock, type Log, type Random, randomId } from '@iris/runtime';
import type { Content, MediaRow, Store } from '@iris/store';
import type { Static } from 'typebox';
import { type Cinema, isPlayed } from './cinema.js';
import type { MediaConfig } from './config.js';
import { isLookable } from './look.js';
import type { Patch, ReadRange } from './read-range.js';
import { head_bytes, type Sniffed, sniff } from './sniff.js';
import { isStrippable, strip } from './strip.js';
import { blankExif } from './strip-exif.js';
import { lookAtMatroska } from './strip-matroska.js';
import { lookAtMovie } from './strip-movie.js';
import { lookAtTiff } from './strip-tiff.js';
import type { Studio } from './studio.js';

export interface ProcessDeps {
  readonly store: Store;
  readonly media: MediaStore;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Absent: nothing is decoded. */
  readonly studio?: Studio;
  /** Absent: films have no preview, and what their index says of duration and dimensions. */
  readonly cinema?: Cinema;
  readonly config: Pick<Static<typeof MediaConfig>, 'media_image_bytes' | 'media_film_bytes'>;
}

/** Those that are too large to be held: what tells too much is found in them, and overwritten. */
const patched: ReadonlyMap<string, (read: ReadRange, size: number) => Promise<{ readonly patches: readonly Patch[] }>> = new Map([
  ...['video/mp4', 'video/quicktime', 'audio/mp4', 'image/x-canon-cr3'].map((mime) => [mime, lookAtMovie] as const),
  ['video/webm', lookAtMatroska],
  ...['image/tiff', 'image/x-raw'].map((mime) => [mime, lookAtTiff] as const),
]);
const utf8 = new TextEncoder();
const opaque: Sniffed = { kind: 'file', mime: 'application/octet-stream' };

/** What reads past an end says it so, too. */
const isNotWhole = (error: unknown): boolean => error instanceof Error && error.name === 'RangeError';

interface Found extends Sniffed {
  readonly details: Record<string, unknown>;
  /** Bytes that take the place of the old. */
  readonly clean?: Buffer | readonly Patch[];
  readonly thumb?: { readonly bytes: Uint8Array; readonly width: number; readonly height: number };
}

/**
 * What an uploaded file is, by its bytes: type and details into its row; what says too much out of its bytes; a preview beside it. The
 * session instance that waits for it is told. Done again it does nothing.
 */
export async function processMedia(
  { tenant_id, media_id, session_id }: { tenant_id: TenantId; media_id: MediaId; session_id?: SessionId },
  deps: ProcessDeps,
): Promise<void> {
  const { store, media, bus, log } = deps;
  const row = await store.media.get(tenant_id, media_id);
  if (row !== undefined && !row.processed && row.object_id !== null && row.state !== 'uploading' && row.state !== 'unused') {
    const found = await lookAt(row, row.object_id, deps);
    const content = found.clean === undefined ? undefined : await rewrite(row, row.object_id, found.clean, deps);
    const thumb = found.thumb === undefined ? {} : { thumb_media_id: await preview(row, found.thumb, deps) };
    const size = content === undefined ? {} : { uploaded_size: row.size };
    const details = { ...found.details, ...thumb, ...size };
    const described = await store.media.describe(tenant_id, media_id, { kind: found.kind, mime: found.mime, details }, content);
    if (described === undefined && content !== undefined) await media.remove(tenant_id, content.object_id);
    log.debug('media.processed', { media_id, mime: found.mime, said: row.mime, cleaned: content !== undefined });
  }
  if (session_id !== undefined) bus.publish(subjects.mediaReady(session_id), utf8.encode(JSON.stringify({ tenant_id, media_id })));
}

async function lookAt(row: MediaRow, object_id: ObjectId, deps: ProcessDeps): Promise<Found> {
  const read = (offset: number, length: number) => bytesOf(deps.media, row.tenant_id, object_id, offset, length);
  const sniffed = sniff(await read(0, head_bytes), row.mime);
  if (isStrippable(sniffed.mime)) return lookAtImage(row, sniffed, read, deps);
  const find = patched.get(sniffed.mime);
  if (find === undefined) return { ...sniffed, ...(await watch(row, object_id, sniffed.mime, {}, deps)) };
  try {
    const { patches, ...facts } = await find(read, row.size);
    const seen = await watch(row, object_id, sniffed.mime, facts, deps);
    return { ...sniffed, ...seen, ...((await changes(patches, read)) ? { clean: patches } : {}) };
  } catch (error) {
    if (!isNotWhole(error)) throw error;
    return notWhole(row.size > deps.config.media_image_bytes ? undefined : await read(0, row.size));
  }
}

async function changes(patches: readonly Patch[], read: ReadRange): Promise<boolean> {
  for (const { offset, bytes } of patches) if (!(await read(offset, bytes.length)).equals(bytes)) return true;
  return false;
}

/** What is built like nothing known, but begins like something that says where it was taken, may say so all the same. */
function notWhole(bytes: Buffer | undefined): Found {
  if (bytes === undefined) return { ...opaque, details: { withheld: true } };
  const clean = blankExif(bytes);
  return { ...opaque, details: {}, ...(clean.equals(bytes) ? {} : { clean }) };
}

/** What there is to see in a film: what ffmpeg finds in it, else what is `known` of it. */
async function watch(
  row: MediaRow,
  object_id: ObjectId,
  mime: string,
  known: Record<string, unknown>,
  { media, cinema, studio, config }: ProcessDeps,
): Promise<Pick<Found, 'details' | 'thumb'>> {
  if (cinema === undefined || !isPlayed(mime) || row.size > config.media_film_bytes) return { details: known };
  const reader = await media.read(row.tenant_id, object_id);
  if (reader === undefined) throw new Error('its bytes are not there');
  const { poster, ...facts } = (await cinema.look(reader.bytes, mime)) ?? {};
  const details = { ...known, ...facts };
  const seen = poster === undefined ? undefined : await studio?.look(poster, 'image/png');
  return seen === undefined ? { details } : { details: { ...details, thumbhash: seen.thumbhash }, thumb: seen.thumb };
}

/** What cannot be opened safely is no picture: devices are not asked to try. */
async function lookAtImage(row: MediaRow, sniffed: Sniffed, read: ReadRange, { studio, log, config }: ProcessDeps): Promise<Found> {
  // To take something out of one, all of it is held.
  if (row.size > config.media_image_bytes) return { ...opaque, details: { withheld: true } };
  const bytes = await read(0, row.size);
  let clean: Buffer | undefined;
  try {
    clean = strip(bytes, sniffed.mime);
  } catch (error) {
    if (!isNotWhole(error)) throw error;
    log.info('media.not_whole', { media_id: row.media_id, mime: sniffed.mime, why: (error as Error).message });
    return notWhole(bytes);
  }
  const cleaned = clean === undefined ? {} : { clean };
  if (studio === undefined || !isLookable(sniffed.mime)) return { ...sniffed, details: {}, ...cleaned };
  const seen = await studio.look(clean ?? bytes, sniffed.mime);
  if (seen === undefined) return { ...opaque, details: {}, ...cleaned };
  const { width, height, thumbhash, thumb } = seen;
  return { ...sniffed, details: { width, height, thumbhash }, thumb, ...cleaned };
}

async function bytesOf(media: MediaStore, tenant_id: TenantId, object_id: ObjectId, offset: number, length: number): Promise<Buffer> {
  const reader = await media.read(tenant_id, object_id, { offset, length });
  if (reader === undefined) throw new Error('its bytes are not there');
  const bytes = Buffer.alloc(Math.max(0, Math.min(length, reader.size - offset)));
  let at = 0;
  for await (const chunk of reader.bytes) {
    bytes.set(chunk, at);
    at += chunk.byteLength;
  }
  return bytes;
}

const newObjectId = (random: Random): ObjectId => `ob_${randomId(random)}` as ObjectId;

/** The file once more, with other bytes in it. */
async function rewrite(row: MediaRow, from: ObjectId, clean: NonNullable<Found['clean']>, deps: ProcessDeps): Promise<Content> {
  const { media, random } = deps;
  const object_id = newObjectId(random);
  const writer = await media.open(row.tenant_id, object_id);
  try {
    if (Buffer.isBuffer(clean)) await writer.append(clean);
    else {
      const reader = await media.read(row.tenant_id, from);
      let at = 0;
      for await (const chunk of reader?.bytes ?? []) {
        const copy = Buffer.from(chunk);
        for (const { offset, bytes } of clean) {
          const [begin, end] = [Math.max(offset, at), Math.min(offset + bytes.length, at + copy.length)];
          if (begin < end) bytes.copy(copy, begin - at, begin - offset, end - offset);
        }
        await writer.append(copy);
        at += copy.length;
      }
    }
    return { object_id, ...(await writer.finish()) };
  } catch (error) {
    await writer.abort();
    throw error;
  }
}

/** A file of its own, which comes and goes with the one that it shows. */
async function preview(row: MediaRow, thumb: NonNullable<Found['thumb']>, deps: ProcessDeps): Promise<MediaId> {
  const { store, media, clock, random } = deps;
  const media_id = `${row.media_id}_t` as MediaId;
  const object_id = newObjectId(random);
  const writer = await media.open(row.tenant_id, object_id);
  await writer.append(thumb.bytes);
  const { size, sha256 } = await writer.finish();
  const { width, height } = thumb;
  const made: MediaRow = {
    tenant_id: row.tenant_id,
    media_id,
    media_ref: null,
    device_id: row.device_id,
    state: 'uploaded',
    kind: 'image',
    mime: 'image/webp',
    size,
    filename: 'preview.webp',
    sha256,
    uploaded_sha256: sha256,
    details: { width, height },
    created_at: clock.now(),
    object_id,
    processed: true,
  };
  if (!(await store.media.insert(made, { object_id, size, sha256 }))) await media.remove(row.tenant_id, object_id);
  return media_id;
}
