import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  DeleteObjectsCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  type ListMultipartUploadsCommandOutput,
  ListObjectsV2Command,
  type MultipartUpload,
  PutObjectCommand,
  S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import type { MediaStore } from './media.js';
import { objectName } from './object-name.js';
import { partBuffer } from './part-buffer.js';
import { s3Address } from './s3-address.js';
import { type MediaSink, mediaWriter } from './writer.js';

/** The least that S3 takes as a part; 10,000 of them are 50 GiB. */
const part_bytes = 5 * 1024 * 1024;
/** Read at a time: a slow reader holds this much, and no connection. */
const window_bytes = 512 * 1024;

/** A silent server is given up on; with its repeats a call ends within half a minute. */
const timeouts = { connectionTimeout: 3_000, socketTimeout: 5_000, requestTimeout: 60_000, throwOnRequestTimeout: true };

/**
 * Objects `<tenant>/<media id>` in one bucket of an S3 server, which is there already. Small files are put at once, larger ones in parts;
 * an object appears when it is whole.
 * @param url as {@link s3Address} reads it
 */
export function s3Media({ url }: { url: string }): MediaStore {
  const { endpoint, region, bucket: Bucket, access, secret } = s3Address(url);
  const client = new S3Client({
    endpoint,
    region,
    credentials: { accessKeyId: access, secretAccessKey: secret },
    forcePathStyle: true,
    // By default newer clients send checksums in a form that other servers store as part of the object.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: { ...timeouts, httpAgent: { maxSockets: 200 }, httpsAgent: { maxSockets: 200 } },
  });
  const folderOf = (tenant_id: string): string => `${objectName(tenant_id)}/`;
  const keyOf = (tenant_id: string, media_id: string): string => folderOf(tenant_id) + objectName(media_id);

  async function head(Key: string): Promise<{ size: number; etag: string | undefined } | undefined> {
    try {
      const { ContentLength = 0, ETag } = await client.send(new HeadObjectCommand({ Bucket, Key }));
      return { size: ContentLength, etag: ETag };
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  function sink(Key: string): MediaSink {
    const buffer = partBuffer(part_bytes);
    const parts: { PartNumber: number; ETag: string | undefined }[] = [];
    let upload: string | undefined;
    /** At most one part is on its way while the next one fills. */
    let sending: Promise<void> = Promise.resolve();

    async function sendPart(Body: Uint8Array): Promise<void> {
      upload ??= (await client.send(new CreateMultipartUploadCommand({ Bucket, Key }))).UploadId;
      const PartNumber = parts.length + 1;
      const { ETag } = await client.send(new UploadPartCommand({ Bucket, Key, UploadId: upload, PartNumber, Body }));
      parts.push({ PartNumber, ETag });
    }
    async function startSending(part: Uint8Array): Promise<void> {
      await sending;
      sending = sendPart(part);
      // Whoever waits for it next hears of a failure; until then it is nobody's.
      sending.catch(() => {});
    }
    return {
      async write(chunk) {
        for (const part of buffer.add(chunk)) await startSending(part);
      },
      async finish() {
        const rest = buffer.rest();
        if (buffer.parts === 0) {
          await client.send(new PutObjectCommand({ Bucket, Key, Body: rest, ContentLength: rest.byteLength }));
          return;
        }
        if (rest.byteLength > 0) await startSending(rest);
        await sending;
        await client.send(new CompleteMultipartUploadCommand({ Bucket, Key, UploadId: upload, MultipartUpload: { Parts: parts } }));
      },
      async abort() {
        await sending.catch(() => {});
        if (upload !== undefined) await client.send(new AbortMultipartUploadCommand({ Bucket, Key, UploadId: upload }));
      },
    };
  }

  /** One window after another; of one version of the object, since an `ETag` names it. */
  async function* bytesOf(Key: string, etag: string | undefined, from: number, to: number): AsyncGenerator<Uint8Array> {
    for (let at = from; at < to; ) {
      const end = Math.min(to, at + window_bytes);
      const condition = etag === undefined ? {} : { IfMatch: etag };
      const { Body } = await client.send(new GetObjectCommand({ Bucket, Key, Range: `bytes=${at}-${end - 1}`, ...condition }));
      const bytes = (await Body?.transformToByteArray()) ?? new Uint8Array();
      if (bytes.byteLength !== end - at) throw new Error(`got ${bytes.byteLength} of ${end - at} bytes at ${at}`);
      at = end;
      yield bytes;
    }
  }

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

  return {
    open: async (tenant_id, media_id) => mediaWriter(sink(keyOf(tenant_id, media_id))),
    async read(tenant_id, media_id, { offset, length = Number.POSITIVE_INFINITY } = { offset: 0 }) {
      const Key = keyOf(tenant_id, media_id);
      const found = await head(Key);
      return found && { size: found.size, bytes: bytesOf(Key, found.etag, offset, Math.min(found.size, offset + length)) };
    },
    async stat(tenant_id, media_id) {
      const found = await head(keyOf(tenant_id, media_id));
      return found && { size: found.size };
    },
    async remove(tenant_id, media_id) {
      await client.send(new DeleteObjectCommand({ Bucket, Key: keyOf(tenant_id, media_id) }));
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
    close: async () => client.destroy(),
  };
}

const isNotFound = (error: unknown): boolean => {
  const { name, $metadata } = error as { name?: unknown; $metadata?: { httpStatusCode?: number } };
  return name === 'NotFound' || name === 'NoSuchKey' || $metadata?.httpStatusCode === 404;
};
