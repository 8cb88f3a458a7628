import { type Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import type { MediaStore } from '@iris/media';
import { type ObjectId, type TenantId, unsupported } from '@iris/protocol';
import type { Archive, ArchiveRow } from '@iris/store';
import tar from 'tar-stream';

/**
 * A tenant as a file: gzip'd tar. `manifest.json` first, then `tables/<table>/<n>.ndjson` with one row a line, in an order in which they can be
 * written, then `objects/<object_id>` with bytes. docs/archive.md is for those who read it without us.
 */
export interface Manifest {
  readonly format: 'iris-tenant';
  readonly version: 1;
  readonly tenant_id: string;
  readonly name: string;
  readonly exported_at: number;
}
export const formatVersion = 1;

const manifestMax = 64 * 1024;
/** Of one file of rows; ours have a few hundred of at most some hundred KiB each. */
const rowsMax = 256 * 1024 * 1024;

/** The archive as a stream, at the reader's pace. */
export function packTenant(parts: { archive: Archive; media: MediaStore | undefined; manifest: Manifest }): Readable {
  const { archive, media, manifest } = parts;
  const pack = tar.pack();
  const tenant_id = manifest.tenant_id as TenantId;
  const write = async () => {
    await entry(pack, 'manifest.json', JSON.stringify(manifest, null, 1));
    const objects: ObjectId[] = [];
    let n = 0;
    for await (const { table, rows } of archive.dump(tenant_id)) {
      if (table === 'media_object')
        objects.push(...rows.filter(({ state }) => state === 'stored').map(({ object_id }) => object_id as ObjectId));
      const name = `tables/${table}/${String(++n).padStart(6, '0')}.ndjson`;
      await entry(pack, name, rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
    }
    for (const object_id of objects) {
      const reader = await media?.read(tenant_id, object_id);
      if (reader !== undefined) await copy(pack, `objects/${encodeURIComponent(object_id)}`, reader);
    }
    pack.finalize();
  };
  const zip = createGzip();
  write().catch((error: unknown) => pack.destroy(error as Error));
  pipeline(pack, zip).catch(() => {});
  return zip;
}

function entry(pack: tar.Pack, name: string, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    pack.entry({ name }, text, (error) => (error ? reject(error) : resolve()));
  });
}

async function copy(pack: tar.Pack, name: string, { size, bytes }: { size: number; bytes: AsyncIterable<Uint8Array> }): Promise<void> {
  const done = deferred();
  const sink = pack.entry({ name, size }, (error) => (error ? done.reject(error) : done.resolve()));
  for await (const chunk of bytes) if (!sink.write(Buffer.from(chunk))) await new Promise((resolve) => sink.once('drain', resolve));
  sink.end();
  await done.promise;
}

function deferred() {
  let resolve!: () => void;
  let reject!: (error: Error) => void;
  const promise = new Promise<void>((yes, no) => {
    [resolve, reject] = [yes, no];
  });
  return { promise, resolve, reject };
}

export interface Unpacked {
  readonly rows: ReadonlyMap<string, number>;
  readonly files: number;
}

/**
 * Reads an archive, part by part; nothing of it is held as a whole.
 * @param parts.begin is given the manifest, and says whose it becomes
 * @throws RequestError `unsupported` for what is no archive of ours, or one of a later version
 */
export async function unpackTenant(
  source: Readable,
  parts: { archive: Archive; media: MediaStore | undefined; begin: (manifest: Manifest) => Promise<TenantId> },
): Promise<Unpacked> {
  const { archive, media } = parts;
  const rows = new Map<string, number>();
  let files = 0;
  let tenant_id: TenantId | undefined;
  const extract = tar.extract();
  const unzipped = source.pipe(createGunzip());
  const fed = pipeline(unzipped, bounded(), extract);
  // What is wrong with the stream is told by the loop below as well.
  fed.catch(() => {});
  try {
    for await (const part of extract) {
      const { name, size = 0 } = part.header;
      const table = /^tables\/([a-z_]+)\/\d+\.ndjson$/.exec(name)?.[1];
      if (tenant_id === undefined) {
        if (name !== 'manifest.json' || size > manifestMax) throw unsupported('archive: no manifest');
        tenant_id = await parts.begin(manifestOf(await textOf(part)));
      } else if (table !== undefined) {
        if (size > rowsMax) throw unsupported('archive: a file of rows is too large');
        const given = linesOf(await textOf(part));
        rows.set(table, (rows.get(table) ?? 0) + (await archive.load(tenant_id, table, given)));
      } else if (name.startsWith('objects/') && media !== undefined) {
        await store(media, tenant_id, decodeURIComponent(name.slice('objects/'.length)) as ObjectId, part);
        files++;
      } else part.resume();
    }
    await fed;
  } catch (error) {
    const { code = '' } = error as { code?: string };
    if (/^Z_|^ERR_STREAM/.test(code) || /tar/i.test((error as Error).message)) throw unsupported('archive: cannot be read');
    throw error;
  } finally {
    source.unpipe();
    source.resume();
  }
  if (tenant_id === undefined) throw unsupported('archive: empty');
  return { rows, files };
}

/** A small file can unpack into a very large one; a tenant's is large by its media, which compress little. */
const ratioMax = 200;
function bounded(): Transform {
  let out = 0;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      out += chunk.length;
      done(out > ratioMax * 1024 * 1024 * 1024 ? new Error('tar: too large') : null, chunk);
    },
  });
}

async function store(media: MediaStore, tenant_id: TenantId, object_id: ObjectId, bytes: AsyncIterable<unknown>): Promise<void> {
  const writer = await media.open(tenant_id, object_id);
  try {
    for await (const chunk of bytes) await writer.append(new Uint8Array(chunk as Buffer));
    await writer.finish();
  } catch (error) {
    await writer.abort();
    throw error;
  }
}

async function textOf(part: AsyncIterable<unknown>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of part) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}

const linesOf = (text: string): ArchiveRow[] => {
  try {
    return text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as ArchiveRow);
  } catch {
    throw unsupported('archive: a row is not JSON');
  }
};

function manifestOf(text: string): Manifest {
  let manifest: Partial<Manifest>;
  try {
    manifest = JSON.parse(text) as Partial<Manifest>;
  } catch {
    throw unsupported('archive: the manifest is not JSON');
  }
  const { format, version, tenant_id, name, exported_at } = manifest;
  if (format !== 'iris-tenant' || typeof tenant_id !== 'string' || typeof name !== 'string' || typeof exported_at !== 'number')
    throw unsupported('archive: not a tenant of ours');
  if (version !== formatVersion) throw unsupported(`archive: version ${version} is not known here`);
  return { format, version, tenant_id, name, exported_at };
}
