import { webcrypto } from 'node:crypto';
import { tmpdir } from 'node:os';
import { Readable } from 'node:stream';
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateBucketCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  DeleteObjectsCommand,
  GetObjectCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  type ListMultipartUploadsCommandOutput,
  ListObjectsV2Command,
  ListPartsCommand,
  type ListPartsCommandOutput,
  type MultipartUpload,
  PutObjectCommand,
  S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { type Clock, systemClock } from '@iris/runtime';
import type { MediaStore } from './media.js';
import { objectName } from './object-name.js';
import { bodyIsSafe, s3Address } from './s3-address.js';
import { type LineRequest, openLine } from './s3-line.js';
import { type PartTarget, partRoom, partSink } from './s3-parts.js';
import { type GetLine, type GetRange, s3Reader } from './s3-read.js';
import { mediaWriter } from './writer.js';

/** The least that S3 takes as a part; 10,000 of them are 50 GiB. */
const part_bytes = 5 * 1024 * 1024;
/** Smaller bodies are hashed on the way, as the SDK does it. */
const large_bytes = 64 * 1024;

/** A silent server is given up on; with its repeats a call ends within half a minute. */
const timeouts = { connectionTimeout: 3_000, socketTimeout: 5_000, requestTimeout: 60_000, throwOnRequestTimeout: true };

export interface S3Media extends MediaStore {
  /** Unless it is there. */
  makeBucket(): Promise<void>;
}

export interface S3MediaOptions {
  /** As {@link s3Address} reads it. */
  readonly url: string;
  /** For what comes faster than the server takes it: files without a name, which are gone when the process is. Default: the system's. */
  readonly spill_dir?: string;
  /** Bytes of all uploads together that are held in memory. */
  readonly memory_bytes?: number;
  /** Bytes of all uploads together that wait on disk at most. */
  readonly spill_bytes?: number;
  readonly clock?: Clock;
}

/**
 * Objects `<tenant>/<object id>` in one bucket of an S3 server, which is there already. Small files are put at once, larger ones in parts;
 * an object appears when it is whole.
 */
export function s3Media(options: S3MediaOptions): S3Media {
  const { url, spill_dir = tmpdir(), memory_bytes = 40 * 1024 * 1024, spill_bytes = 2 ** 40, clock = systemClock } = options;
  const { endpoint, region, bucket: Bucket, access, secret } = s3Address(url);
  const config = {
    endpoint,
    region,
    credentials: { accessKeyId: access, secretAccessKey: secret },
    forcePathStyle: true,
    // By default newer clients send checksums in a form that other servers store as part of the object.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
  } as const;
  const unsigned = bodyIsSafe(endpoint);
  const connect = (given: { readonly socketTimeout: number }): S3Client => {
    const client = new S3Client({
      ...config,
      requestHandler: { ...timeouts, ...given, httpAgent: { maxSockets: 200 }, httpsAgent: { maxSockets: 200 } },
    });
    client.middlewareStack.add(
      (next) => async (args) => {
        const { body, headers } = args.request as { body?: unknown; headers: Record<string, string> };
        // The SDK would hash all of it in one go, and every other socket of the process would wait.
        if (body instanceof Uint8Array && body.byteLength > large_bytes)
          headers['x-amz-content-sha256'] = unsigned
            ? 'UNSIGNED-PAYLOAD'
            : Buffer.from(await webcrypto.subtle.digest('SHA-256', body)).toString('hex');
        return next(args);
      },
      { step: 'build', name: 'bodyHash' },
    );
    return client;
  };
  const client = connect(timeouts);
  // The way takes all of a part at once and a slow server much later: until then nothing is heard, and nothing is wrong.
  const partClient = connect({ socketTimeout: timeouts.requestTimeout });
  const room = partRoom({ parts: Math.max(3, Math.floor(memory_bytes / part_bytes)), spill_dir, spill_bytes });
  const folderOf = (tenant_id: string): string => `${objectName(tenant_id)}/`;
  const keyOf = (tenant_id: string, object_id: string): string => folderOf(tenant_id) + objectName(object_id);

  async function head(Key: string): Promise<{ size: number; etag: string | undefined } | undefined> {
    try {
      const { ContentLength = 0, ETag } = await client.send(new HeadObjectCommand({ Bucket, Key }));
      return { size: ContentLength, etag: ETag };
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  const target = (Key: string): PartTarget => ({
    put: async (Body) => void (await client.send(new PutObjectCommand({ Bucket, Key, Body, ContentLength: Body.byteLength }))),
    begin: async () => (await client.send(new CreateMultipartUploadCommand({ Bucket, Key }))).UploadId ?? '',
    part: async (UploadId, PartNumber, Body) =>
      (await partClient.send(new UploadPartCommand({ Bucket, Key, UploadId, PartNumber, Body }))).ETag,
    complete: async (UploadId, parts) => {
      const Parts = parts.map((ETag, i) => ({ PartNumber: i + 1, ETag }));
      await client.send(new CompleteMultipartUploadCommand({ Bucket, Key, UploadId, MultipartUpload: { Parts } }));
    },
    abort: async (UploadId) => void (await client.send(new AbortMultipartUploadCommand({ Bucket, Key, UploadId }))),
  });

  /** Of several uploads of one key, the one that was begun last; its parts as far as they follow each other without a gap. */
  async function keptParts(Key: string): Promise<{ upload: string; etags: (string | undefined)[] } | undefined> {
    let found: MultipartUpload | undefined;
    for await (const upload of uploads(Key)) if (upload.Key === Key && !(upload.Initiated! < (found?.Initiated ?? 0))) found = upload;
    if (found === undefined) return undefined;
    const etags: (string | undefined)[] = [];
    for (let PartNumberMarker: string | undefined; ; ) {
      const page: ListPartsCommandOutput = await client.send(
        new ListPartsCommand({ Bucket, Key, UploadId: found.UploadId, ...(PartNumberMarker === undefined ? {} : { PartNumberMarker }) }),
      );
      for (const { PartNumber, Size, ETag } of page.Parts ?? []) {
        if (PartNumber !== etags.length + 1 || Size !== part_bytes) return { upload: found.UploadId ?? '', etags };
        etags.push(ETag);
      }
      PartNumberMarker = page.NextPartNumberMarker;
      if (!page.IsTruncated) return { upload: found.UploadId ?? '', etags };
    }
  }

  const rangeOf = (Key: string, etag: string | undefined, from: number, to: number) =>
    // Of one version of the object, since an `ETag` names it.
    new GetObjectCommand({ Bucket, Key, Range: `bytes=${from}-${to - 1}`, ...(etag === undefined ? {} : { IfMatch: etag }) });
  const lines = new WeakMap<object, AsyncIterable<Uint8Array>>();
  /** Signs as the other does, and hands over a line instead of a stream. */
  const lineClient = new S3Client({
    ...config,
    requestHandler: {
      async handle(request: LineRequest) {
        const [from = 0, last = 0] =
          /(\d+)-(\d+)/
            .exec(request.headers.range ?? '')
            ?.slice(1)
            .map(Number) ?? [];
        const line = await openLine(request, { from, to: last + 1 }, clock);
        if (line === undefined) throw new Error('no such line');
        const body = Readable.from([]);
        lines.set(body, line);
        return { response: { statusCode: 206, headers: {}, body } };
      },
    },
  });
  const getLine: GetLine = async (...range) => lines.get((await lineClient.send(rangeOf(...range))).Body!)!;
  // In Node the body is one, which the SDK's type leaves open.
  const get: GetRange = async (...range) => (await client.send(rangeOf(...range))).Body as unknown as Readable;
  const bytesOf = s3Reader(get, getLine, clock);

  async function* uploads(Prefix?: string): AsyncGenerator<MultipartUpload> {
    let more: { KeyMarker?: string; UploadIdMarker?: string } | undefined = {};
    while (more) {
      const page: ListMultipartUploadsCommandOutput = await client.send(
        new ListMultipartUploadsCommand({ Bucket, ...(Prefix === undefined ? {} : { Prefix }), ...more }),
      );
      yield* page.Uploads ?? [];
      more = page.IsTruncated ? { KeyMarker: page.NextKeyMarker ?? '', UploadIdMarker: page.NextUploadIdMarker ?? '' } : undefined;
    }
  }
  const abort = async ({ Key, UploadId }: MultipartUpload): Promise<void> => {
    await client.send(new AbortMultipartUploadCommand({ Bucket, Key, UploadId }));
  };

  const media: S3Media = {
    async makeBucket() {
      try {
        await client.send(new HeadBucketCommand({ Bucket }));
      } catch (error) {
        if (!isNotFound(error)) throw error;
        // Another process may be a moment faster.
        await client
          .send(new CreateBucketCommand({ Bucket }))
          .catch(async () => void (await client.send(new HeadBucketCommand({ Bucket }))));
      }
    },
    open: async (tenant_id, object_id, { keep } = { keep: false }) =>
      mediaWriter(partSink(target(keyOf(tenant_id, object_id)), room, { keep, part_bytes })),
    async resume(tenant_id, object_id) {
      const Key = keyOf(tenant_id, object_id);
      // One that is swept away, or comes to its end elsewhere, between two questions is not there.
      const kept = await keptParts(Key).catch((error: unknown) => {
        if (isNotFound(error)) return undefined;
        throw error;
      });
      if (kept === undefined) return undefined;
      const offset = kept.etags.length * part_bytes;
      const readBack = () => media.read(tenant_id, object_id, { offset: 0, lent: true });
      const discard = () => media.remove(tenant_id, object_id);
      const sink = partSink(target(Key), room, { keep: true, part_bytes, ...kept });
      return { offset, writer: mediaWriter(sink, { offset, readBack, discard }) };
    },
    async read(tenant_id, object_id, { offset, length = Number.POSITIVE_INFINITY, lent = false } = { offset: 0 }) {
      const Key = keyOf(tenant_id, object_id);
      const found = await head(Key);
      return found && { size: found.size, bytes: bytesOf(Key, found.etag, offset, Math.min(found.size, offset + length), lent) };
    },
    async stat(tenant_id, object_id) {
      const found = await head(keyOf(tenant_id, object_id));
      return found && { size: found.size };
    },
    async remove(tenant_id, object_id) {
      await client.send(new DeleteObjectCommand({ Bucket, Key: keyOf(tenant_id, object_id) }));
    },
    async removeTenant(tenant_id) {
      const Prefix = folderOf(tenant_id);
      for await (const upload of uploads(Prefix)) await abort(upload);
      for (;;) {
        const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket, Prefix, MaxKeys: 1_000 }));
        if (Contents.length === 0) return;
        const Objects = Contents.map(({ Key }) => ({ Key }));
        const { Errors = [] } = await client.send(new DeleteObjectsCommand({ Bucket, Delete: { Objects, Quiet: true } }));
        if (Errors[0]) throw new Error(`${Errors.length} objects could not be removed: ${Errors[0].Code} ${Errors[0].Message}`);
      }
    },
    async sweep(before_ms) {
      let swept = 0;
      for await (const upload of uploads()) {
        if ((upload.Initiated?.getTime() ?? Number.POSITIVE_INFINITY) >= before_ms) continue;
        await abort(upload);
        swept++;
      }
      return swept;
    },
    async close() {
      client.destroy();
      partClient.destroy();
      lineClient.destroy();
    },
  };
  return media;
}

const isNotFound = (error: unknown): boolean => {
  const { name, $metadata } = error as { name?: unknown; $metadata?: { httpStatusCode?: number } };
  return name === 'NotFound' || name === 'NoSuchKey' || $metadata?.httpStatusCode === 404;
};
