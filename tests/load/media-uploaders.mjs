/** Devices that upload at once, in a process of their own: what they cost is not what is measured. Told what to do by `media.mjs many`. */
import { randomBytes } from 'node:crypto';
import { device } from './media-client.mjs';

const { url, token, count, size, line_bytes } = JSON.parse(process.argv[2]);
const chunk = randomBytes(64 * 1024);
const sleep = (ms) => new Promise((resolve) => void setTimeout(resolve, ms));
const all = await Promise.all(Array.from({ length: count }, (_, n) => device(url, token, `u${n}`)));
process.send({ ready: true });
let sent = 0;
let ended = 0;
const failed = [];
process.on('message', () => {
  setInterval(() => process.send({ sent, ended, failed }), 200);
  const began = performance.now();
  all.forEach(async (one, n) => {
    // Of each another content: equal ones are stored once.
    const own = Buffer.from(chunk);
    own.writeUInt32LE(n, 0);
    one.say('media.upload.start', { media_ref: `mu${n}`, kind: 'file', mime: 'a/b', size });
    for (let at = 0; at < size; at += own.length) {
      // As fast as its line is, and not all of them in the same moment.
      const due = began + ((at + (own.length * n) / count) / line_bytes) * 1_000;
      if (due > performance.now()) await sleep(due - performance.now());
      await one.send(own.subarray(0, Math.min(own.length, size - at)));
      sent += Math.min(own.length, size - at);
    }
    const { type, payload } = await one.ask('media.upload.end', { media_ref: `mu${n}` }, 'end');
    if (type === 'media.upload.ack') ended++;
    else failed.push(payload);
  });
});
process.on('disconnect', () => process.exit(0));
