import { isIP, connect as tcp } from 'node:net';
import { connect as tls } from 'node:tls';
import type { Clock } from '@iris/runtime';

/** What the SDK has signed and would send. */
export interface LineRequest {
  readonly protocol: string;
  readonly hostname: string;
  readonly port?: number | undefined;
  readonly path: string;
  readonly query?: Readonly<Record<string, string | string[] | null>> | undefined;
  readonly headers: Readonly<Record<string, string>>;
}

/** Of a piece of a body; the last one may be shorter. What waits for its reader is eight of them. */
export const piece_bytes = 64 * 1024;
const slabs = 8;
/** The line waits no longer than twice this for a reader that stops. */
const hold_ms = 250;
/** A server that says nothing for so long is given up on. */
const silent_ms = 5_000;
const headMax = 16 * 1024;

/**
 * One `GET` of the bytes `[from, to)` on a connection of its own, read into the same few pieces of memory again and again: with Node's own client each 64 KiB
 * are a buffer, and collecting these takes more of the processor than all else that is done with them.
 * @returns undefined when the answer is anything but those bytes in the plainest form; whoever knows more forms asks again then. A piece is the
 *  reader's until it asks for the next one. They end short when the line breaks or the reader stops: what is missing is to be asked for again.
 */
export function openLine(
  request: LineRequest,
  { from, to }: { from: number; to: number },
  clock: Clock,
): Promise<AsyncGenerator<Uint8Array> | undefined> {
  const asked = asText(request);
  if (asked === undefined) return Promise.resolve(undefined);
  const memory = Buffer.allocUnsafeSlow(slabs * piece_bytes);
  const free = Array.from({ length: slabs - 1 }, (_, n) => memory.subarray((n + 1) * piece_bytes, (n + 2) * piece_bytes));
  let slab = memory.subarray(0, piece_bytes);
  let filled = 0;
  let left = to - from;
  const ready: Uint8Array[] = [];
  let over = false;
  let waits_since = Number.POSITIVE_INFINITY;
  let heard_at = clock.now();
  let wake = () => {};
  let answered: ((ok: boolean) => void) | undefined;
  const opened = new Promise<boolean>((resolve) => {
    answered = resolve;
  });

  const host = request.hostname.replace(/^\[(.*)\]$/, '$1');
  const secure = request.protocol === 'https:';
  const where = { host, port: request.port ?? (secure ? 443 : 80), onread: { buffer: () => slab.subarray(filled), callback: heard } };
  const socket = secure ? tls({ ...where, ...(isIP(host) === 0 ? { servername: host } : {}), ALPNProtocols: ['http/1.1'] }) : tcp(where);
  socket.on(secure ? 'secureConnect' : 'connect', () => socket.write(asked, 'latin1'));
  const end = () => {
    if (over) return;
    over = true;
    watch.cancel();
    socket.destroy();
    answered?.(false);
    wake();
  };
  socket.on('error', end).on('close', end);
  const watch = clock.every(hold_ms, () => {
    const now = clock.now();
    if (now - waits_since >= hold_ms || (waits_since === Number.POSITIVE_INFINITY && now - heard_at >= silent_ms)) end();
  });

  /** @returns whether more may come */
  function heard(count: number): boolean {
    if (over) return false;
    heard_at = clock.now();
    filled += count;
    if (answered !== undefined) {
      const head = slab.indexOf('\r\n\r\n');
      if (head < 0 || head + 4 > filled) {
        if (filled > headMax) end();
        return !over;
      }
      if (!isPlain(slab.toString('latin1', 0, head), from, to)) {
        end();
        return false;
      }
      slab.copyWithin(0, head + 4, filled);
      filled -= head + 4;
      answered(true);
      answered = undefined;
    }
    if (filled < piece_bytes && filled < left) return true;
    const piece = slab.subarray(0, Math.min(filled, left));
    left -= piece.byteLength;
    ready.push(piece);
    filled = 0;
    if (left === 0) end();
    else {
      slab = free.pop()!;
      wake();
    }
    // What is being filled is never the last: there must be one to go on with.
    return free.length > 0;
  }

  async function* pieces(): AsyncGenerator<Uint8Array> {
    try {
      for (;;) {
        const piece = ready.shift();
        if (piece !== undefined) {
          waits_since = clock.now();
          yield piece;
          waits_since = Number.POSITIVE_INFINITY;
          free.push(memory.subarray(piece.byteOffset, piece.byteOffset + piece_bytes));
          heard_at = clock.now();
          if (free.length === 1 && !over) socket.resume();
        } else if (over) return;
        else
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
      }
    } finally {
      end();
    }
  }
  return opened.then((ok) => (ok ? pieces() : undefined));
}

/** Undefined when it has what is not known here. */
function asText({ path, query = {}, headers }: LineRequest): string | undefined {
  const said: string[] = [];
  for (const [name, value] of Object.entries(query)) {
    if (Array.isArray(value)) return undefined;
    said.push(value ? `${escaped(name)}=${escaped(value)}` : escaped(name));
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `GET ${path}${said.length > 0 ? `?${said.join('&')}` : ''} HTTP/1.1\r\n${lines.join('')}connection: close\r\n\r\n`;
}
const escaped = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`);

/** Exactly those bytes, with nothing around them. */
function isPlain(head: string, from: number, to: number): boolean {
  const [status = '', ...fields] = head.toLowerCase().split('\r\n');
  const has = (pattern: RegExp) => fields.some((field) => pattern.test(field));
  return (
    status.startsWith('http/1.1 206') &&
    has(new RegExp(`^content-range:\\s*bytes ${from}-${to - 1}/`)) &&
    has(new RegExp(`^content-length:\\s*${to - from}\\s*$`)) &&
    !has(/^transfer-encoding:/)
  );
}
