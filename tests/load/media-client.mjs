import { createHash, randomBytes } from 'node:crypto';
import { connect } from 'node:net';

const noMask = Buffer.alloc(4);
const [text, binary, ping, pong] = [1, 2, 9, 10];

/**
 * A device that is all about bytes, on a socket of its own: frames are masked with zeros, so that nothing is copied, and what is pulled is
 * hashed where it lies. A library in the same process takes more of the machine than the edge does, and would be measured with it.
 * @param heardBinary called after each piece of a pull
 */
export async function device(url, token, device_id, { heardBinary = () => {} } = {}) {
  const { host, hostname, port, pathname } = new URL(url);
  const heard = [];
  const waiting = new Set();
  let got = { bytes: 0, hash: createHash('sha256') };
  let head = Buffer.alloc(0);
  let left = 0;
  let kind = 0;
  let pieces = [];
  let upgraded;
  const open = new Promise((resolve) => {
    upgraded = resolve;
  });
  const socket = connect({
    host: hostname,
    port: Number(port),
    onread: {
      buffer: Buffer.allocUnsafe(256 * 1024),
      callback: (count, buffer) => {
        take(buffer.subarray(0, count));
        return true;
      },
    },
  });
  socket.setNoDelay(true);
  socket.on('error', () => {});

  function take(data) {
    if (upgraded !== undefined) {
      head = Buffer.concat([head, data]);
      const end = head.indexOf('\r\n\r\n');
      if (end < 0) return;
      const [rest, answer] = [head.subarray(end + 4), head.toString('latin1', 0, 12)];
      if (answer !== 'HTTP/1.1 101') throw new Error(answer);
      head = Buffer.alloc(0);
      upgraded();
      upgraded = undefined;
      return take(rest);
    }
    for (let at = 0; at < data.length; ) {
      if (left > 0) {
        const piece = data.subarray(at, at + left);
        at += piece.length;
        left -= piece.length;
        if (kind === binary) {
          got.hash.update(piece);
          got.bytes += piece.length;
          heardBinary(piece.length, left === 0);
        } else {
          pieces.push(Buffer.from(piece));
          if (left === 0) whole();
        }
        continue;
      }
      // A header may come in two reads: one byte more at a time until it is whole.
      head = Buffer.concat([head, data.subarray(at, at + 1)]);
      at++;
      if (head.length < 2) continue;
      const short = head[1] & 127;
      if (head.length < (short < 126 ? 2 : short === 126 ? 4 : 10)) continue;
      left = short < 126 ? short : short === 126 ? head.readUInt16BE(2) : Number(head.readBigUInt64BE(2));
      kind = head[0] & 15;
      head = Buffer.alloc(0);
      if (left === 0) whole();
    }
  }
  function whole() {
    const data = Buffer.concat(pieces);
    pieces = [];
    if (kind === ping) write(pong, data);
    else if (kind === text) {
      heard.push(JSON.parse(data.toString()));
      for (const one of waiting) one();
    }
  }
  /** @returns whether more may be written at once */
  function write(type, data) {
    const length = data.length;
    const header = Buffer.alloc(length < 126 ? 2 : length < 65_536 ? 4 : 10);
    header[0] = 0x80 | type;
    header[1] = 0x80 | (length < 126 ? length : length < 65_536 ? 126 : 127);
    if (header.length === 4) header.writeUInt16BE(length, 2);
    if (header.length === 10) header.writeBigUInt64BE(BigInt(length), 2);
    socket.cork();
    socket.write(header);
    socket.write(noMask);
    const more = socket.write(data);
    process.nextTick(() => socket.uncork());
    return more;
  }
  const next = (matches) =>
    new Promise((resolve) => {
      const look = () => {
        const at = heard.findIndex(matches);
        if (at < 0) return;
        waiting.delete(look);
        resolve(heard.splice(at, 1)[0]);
      };
      waiting.add(look);
      look();
    });
  const say = (type, payload, id) => write(text, Buffer.from(JSON.stringify({ type, ...(id === undefined ? {} : { id }), payload })));
  const ask = (type, payload, id) => {
    const answer = next((frame) => frame.id === id);
    say(type, payload, id);
    return answer;
  };

  socket.write(
    `GET ${pathname} HTTP/1.1\r\nHost: ${host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${randomBytes(16).toString('base64')}\r\n\r\n`,
  );
  await open;
  await ask('hello', { token, device_id }, 'hello');
  return {
    next,
    say,
    ask,
    close: () => socket.destroy(),
    /** One binary frame; resolves when the socket takes more. */
    async send(chunk) {
      if (!write(binary, chunk) && !socket.destroyed)
        await new Promise((resolve) => {
          const done = () => {
            socket.off('drain', done).off('close', done);
            resolve();
          };
          socket.on('drain', done).on('close', done);
        });
    },
    /** What has been pulled since the last call. */
    pulled() {
      const { bytes, hash } = got;
      got = { bytes: 0, hash: createHash('sha256') };
      return { bytes, sha256: hash.digest('hex') };
    },
  };
}
