import { type Static, Type } from 'typebox';
import { filesystemMedia } from './filesystem-media.js';
import type { MediaStore } from './media.js';
import { s3Media } from './s3-media.js';

/** Where the bytes of files are: for every process that touches them the same. */
export const MediaPlace = Type.Object({
  s3_url: Type.Optional(
    Type.String({
      secret: true,
      description: 'http://access:secret@host:port/bucket?region=us-east-1; without it, files are in media_dir',
    }),
  ),
  media_dir: Type.Optional(Type.String({ description: 'folder for files, shared by all processes' })),
  spill_dir: Type.Optional(
    Type.String({
      description: 'folder for parts of uploads that S3 does not take fast enough; default: the system’s for temporary files',
    }),
  ),
  spill_bytes: Type.Integer({
    default: 20 * 1024 ** 3,
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
    description: 'bytes that may wait there; what is more is refused, to be tried again later',
  }),
});

/** The bucket is made when it is not there. @throws when it is not said where, or S3 cannot be reached */
export async function openMedia({ s3_url, media_dir, spill_dir, spill_bytes }: Static<typeof MediaPlace>): Promise<MediaStore> {
  if (s3_url) {
    const media = s3Media({ url: s3_url, spill_bytes, ...(spill_dir === undefined ? {} : { spill_dir }) });
    await media.makeBucket();
    return media;
  }
  if (media_dir) return filesystemMedia({ folder: media_dir });
  throw new Error('set IRIS_S3_URL, or IRIS_MEDIA_DIR to a folder that all processes share');
}
