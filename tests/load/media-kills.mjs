/**
 * Kills an edge in mid-upload at 20 offsets, over S3 and over a folder (needs a build; S3 needs versitygw or IRIS_TEST_S3_URL):
 *   node tests/load/media-kills.mjs [folder | s3]
 * At each offset one upload is to be gone on with, and one is not. Nothing half stored is ever visible; what is gone on with ends with the
 * right hash and comes back as it was; what is not starts over; and the store holds nothing but what rows name.
 */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3';
import { findS3, startS3 } from '@iris/devstack';
import { s3Address } from '@iris/media';
import { cluster, pull, sendBytes, sha256Of } from '@iris/testkit';

const MiB = 1024 * 1024;
const part = 5 * MiB;
const size = 2 * part + 300_000;
// The first and the last bytes, both sides of both borders between parts, places in between, and with the end on its way.
const between = Array.from({ length: 9 }, (_, n) => Math.round(((n + 1) * size) / 10) + n);
const offsets = [0, 1, part - 1, part, part + 1, 2 * part - 1, 2 * part, 2 * part + 1, size - 1, size, 'end', ...between].slice(0, 20);

function insist(holds, what) {
  if (!holds) throw new Error(what);
}

async function kills(name, set, keys) {
  const all = await cluster({ edges: 1, sessions: 1, workers: 1, set: { ...set, media_ready_ms: 2_000 } });
  const tenant = await all.tenant({ file_bytes: 2 ** 40, stored_bytes: 2 ** 40, upload_bytes_per_day: 2 ** 40 });
  const began = performance.now();
  const [kept, plain] = [await tenant.join('kept'), await tenant.join('plain')];
  const resumed = [];
  for (const [n, at] of offsets.entries()) {
    const bytes = new Uint8Array(randomBytes(size));
    const sha256 = sha256Of(bytes);
    const start = (media_ref, resume) => ({ media_ref, kind: 'file', mime: 'a/b', size, ...(resume ? { resume } : {}) });
    const until = at === 'end' ? size : at;
    insist((await kept.request('media.upload.start', start(`k${n}`, true))).payload.offset === 0, 'something stood before');
    plain.say('media.upload.start', start(`p${n}`, false));
    for (const device of [kept, plain]) {
      sendBytes(device, bytes.subarray(0, until));
      if (at === 'end') device.say('media.upload.end', { media_ref: device === kept ? `k${n}` : `p${n}` });
      // Read to here by the edge: what comes before a pong has come. With its end under way it is killed in the midst of that.
      else await device.request('ping', {});
    }
    await all.edges.at(-1).kill();
    await Promise.all([kept.closed(), plain.closed()]);
    const edge = all.edges.length;
    await all.startEdge();
    await kept.join(tenant.dial(edge));
    await plain.join(tenant.dial(edge));
    for (const [device, ref] of [
      [kept, `k${n}`],
      [plain, `p${n}`],
    ]) {
      const row = await all.store.media.byRef(tenant.tenant_id, device.device_id, ref);
      if (row?.state === 'uploaded') {
        insist(at === 'end' && row.sha256 === sha256, `${ref}: stored without its end, or wrong`);
        continue;
      }
      const said = await device.send('now', { media_refs: [ref] });
      insist(said.type === 'error' && said.payload.code === 'not_found', `${ref} is visible at ${at}: ${JSON.stringify(said)}`);
    }
    for (const [device, ref, resume] of [
      [kept, `k${n}`, true],
      [plain, `p${n}`, false],
    ]) {
      let offset = 0;
      if (resume) {
        offset = (await device.request('media.upload.start', start(ref, true))).payload.offset;
        insist(offset <= until, `${offset} of ${until} bytes are said to be stored`);
        resumed.push(`${at}→${offset}`);
      } else device.say('media.upload.start', start(ref, false));
      sendBytes(device, bytes.subarray(offset));
      const ack = await device.request('media.upload.end', { media_ref: ref, sha256 });
      insist(ack.type === 'media.upload.ack' && ack.payload.sha256 === sha256, `${ref} at ${at}: ${JSON.stringify(ack)}`);
      const { payload } = await device.send('whole', { media_refs: [ref] });
      insist(sha256Of((await pull(device, payload.media[0].media_id)).bytes) === sha256, `${ref} at ${at}: other bytes came back`);
    }
  }
  const named = offsets.length;
  const stored = (await keys?.()) ?? named;
  // Each pair has equal content, which is stored once; the second object goes with the next look for what nothing names.
  insist(stored <= 2 * named + 1, `${stored} objects for ${named} contents`);
  console.log(
    `${name}: ${offsets.length} kills in ${((performance.now() - began) / 1_000).toFixed(0)} s, all well; resumed at ${resumed.join(', ')}`,
  );
  await all.close();
}

const dir = mkdtempSync(join(tmpdir(), 'iris-kills-'));
try {
  if (process.argv[2] !== 's3') await kills('folder', {});
  const program = findS3();
  const given = process.env.IRIS_TEST_S3_URL;
  if (process.argv[2] === 'folder') console.log('S3: not asked for');
  else if (program === undefined && !given) console.log('S3: left out, no server: have versitygw in PATH, or set IRIS_TEST_S3_URL');
  else {
    const own = given
      ? undefined
      : await startS3({ program, run_dir: dir, data: join(dir, 'data'), access: 'test', secret: 'test-secret', bucket: 'iris' });
    const url = given ?? own.url;
    const { endpoint, region, bucket: Bucket, access, secret } = s3Address(url);
    const client = new S3Client({
      endpoint,
      region,
      forcePathStyle: true,
      credentials: { accessKeyId: access, secretAccessKey: secret },
      responseChecksumValidation: 'WHEN_REQUIRED',
    });
    const count = async () => (await client.send(new ListObjectsV2Command({ Bucket }))).KeyCount ?? 0;
    const before = await count();
    await kills('S3', { s3_url: url }, async () => (await count()) - before);
    client.destroy();
    await own?.stop();
  }
} finally {
  rmSync(dir, { recursive: true, force: true });
}
