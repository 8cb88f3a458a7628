import { filesystemMedia, memoryMedia, s3Media } from '@iris/media';
import { describeMedia } from '@iris/media/contract';
import { describe, test } from '@jest/globals';
import { noS3, s3ForTests } from './s3-servers.js';
import { scratch } from './servers.js';

describeMedia('media in memory', async () => {
  const media = memoryMedia();
  return { media, other: media, close: () => media.close() };
});

describeMedia('media on the filesystem', async () => {
  const { dir, remove } = scratch('media');
  return { media: filesystemMedia({ folder: dir }), other: filesystemMedia({ folder: dir }), close: async () => remove() };
});

if (noS3 === undefined) {
  describeMedia('media on S3', async () => {
    const server = await s3ForTests();
    const [media, other] = [s3Media({ url: server.url }), s3Media({ url: server.url, memory_bytes: 1 })];
    return {
      media,
      other,
      async close() {
        await Promise.all([media.close(), other.close()]);
        await server.end();
      },
    };
  });
} else {
  console.warn(`media on S3 ${noS3}`);
  describe.skip(`media on S3 ${noS3}`, () => {
    test('everything', () => {});
  });
}
