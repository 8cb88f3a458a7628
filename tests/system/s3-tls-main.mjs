/** Stores a file at the S3 address in its first argument, reads it again as fast as it comes, and says the hash of either, or what went wrong. */
import { createHash, randomBytes } from 'node:crypto';
import { s3Media } from '@iris/media';

const media = s3Media({ url: process.argv[2] });
const [tenant_id, object_id] = [`t${process.pid}`, `o${Date.now()}`];
try {
  const writer = await media.open(tenant_id, object_id);
  for (let n = 0; n < 12; n++) await writer.append(randomBytes(1024 * 1024));
  const { sha256 } = await writer.finish();
  const hash = createHash('sha256');
  const { bytes } = await media.read(tenant_id, object_id, { offset: 0, lent: true });
  for await (const piece of bytes) hash.update(piece);
  await media.remove(tenant_id, object_id);
  process.send({ stored: sha256, read: hash.digest('hex') });
} catch (error) {
  process.send({ fault: `${error.name} ${error.code} ${error.message}` });
}
await media.close();
process.disconnect();
