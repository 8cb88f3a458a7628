import type { HttpResponse } from 'uWebSockets.js';

export function refuse(res: HttpResponse, status: string) {
  res.cork(() => res.writeStatus(status).end(status.slice(4), true));
}

export function reply(res: HttpResponse, status: string, headers: Readonly<Record<string, string>>, body: string) {
  res.cork(() => {
    res.writeStatus(status);
    for (const [name, value] of Object.entries(headers)) res.writeHeader(name, value);
    res.end(body);
  });
}

/** The whole body as text, or undefined, at once, when it is more than `most` bytes. */
export function bodyOf(res: HttpResponse, most: number, done: (body: string | undefined) => void) {
  const chunks: Buffer[] = [];
  let size = 0;
  res.onData((chunk, last) => {
    const before = size;
    size += chunk.byteLength;
    if (size > most) {
      if (before <= most) done(undefined);
      return;
    }
    chunks.push(Buffer.from(chunk.slice(0)));
    if (last) done(Buffer.concat(chunks).toString('utf8'));
  });
}
