import { createHash } from 'node:crypto';
import {
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { s3Address } from '@iris/media';

const part_bytes = 5 * 1024 * 1024;

/**
 * The SDK as an app would use it beside us: a running hash, parts of 5 MiB, four at once as its own `lib-storage` does it; and one `GET`
 * whose bytes are hashed as they come.
 */
export function plain(url, chunk) {
  const { endpoint, region, bucket: Bucket, access, secret } = s3Address(url);
  const client = new S3Client({
    endpoint,
    region,
    forcePathStyle: true,
    credentials: { accessKeyId: access, secretAccessKey: secret },
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
  });
  return {
    async up(Key, size) {
      const hash = createHash('sha256');
      const { UploadId } = await client.send(new CreateMultipartUploadCommand({ Bucket, Key }));
      const Parts = [];
      const going = new Set();
      for (let at = 0, n = 1; at < size; n++) {
        const body = Buffer.allocUnsafe(Math.min(part_bytes, size - at));
        for (let used = 0; used < body.length; ) {
          const piece = chunk.subarray(at % chunk.length, (at % chunk.length) + Math.min(chunk.length, body.length - used));
          piece.copy(body, used);
          hash.update(piece);
          used += piece.length;
          at += piece.length;
        }
        while (going.size >= 4) await Promise.race(going);
        const one = client.send(new UploadPartCommand({ Bucket, Key, UploadId, PartNumber: n, Body: body })).then(({ ETag }) => {
          Parts[n - 1] = { PartNumber: n, ETag };
          going.delete(one);
        });
        going.add(one);
      }
      await Promise.all(going);
      await client.send(new CompleteMultipartUploadCommand({ Bucket, Key, UploadId, MultipartUpload: { Parts } }));
      return hash.digest('hex');
    },
    async down(Key) {
      const hash = createHash('sha256');
      const { Body } = await client.send(new GetObjectCommand({ Bucket, Key }));
      for await (const part of Body) hash.update(part);
      return hash.digest('hex');
    },
    /** What both have stored: no round has more on the disk than another. */
    async clear() {
      const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket }));
      for (const { Key } of Contents) await client.send(new DeleteObjectCommand({ Bucket, Key }));
    },
    close: () => client.destroy(),
  };
}
