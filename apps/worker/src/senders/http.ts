import { type ClientRequest, Agent as HttpAgent, request as httpRequest } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { Clock } from '@iris/runtime';

export interface HttpRequest {
  readonly method: 'POST' | 'DELETE' | 'PUT';
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
}
export interface HttpAnswer {
  readonly status: number;
  /** By names in small letters. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly text: string;
}
/** One request. Rejects with {@link HttpFailure} when there is no answer in time. */
export type Http = (request: HttpRequest, options: { timeout_ms: number }) => Promise<HttpAnswer>;

/** Nothing was heard of the other side; whether it has heard us is unknown. */
export class HttpFailure extends Error {
  override readonly name = 'HttpFailure';
}

/** Answers say little; more than this is not looked at. */
const answerMax = 16 * 1024;
/** A connection that nobody needs for so long is closed; servers keep them longer. */
const idle_ms = 30_000;

/**
 * On connections that are kept, per server. Redirects are not followed: a push goes to whom it is for. Node's own client and not `fetch`, which takes about
 * twice the processor time for an answer of a few bytes.
 */
export function nodeHttp(clock: Clock): Http {
  const kept = { keepAlive: true, scheduling: 'lifo', timeout: idle_ms } as const;
  const agents = { 'http:': new HttpAgent(kept), 'https:': new HttpsAgent(kept) } as const;
  return ({ method, url, headers, body }, { timeout_ms }) =>
    new Promise((resolve, reject) => {
      const fail = (error: unknown) => {
        timer.cancel();
        const { code, message } = error as NodeJS.ErrnoException;
        reject(new HttpFailure(late ? `no answer within ${timeout_ms} ms` : (code ?? message)));
      };
      let late = false;
      const timer = clock.after(timeout_ms, () => {
        late = true;
        asked?.destroy(new Error('late'));
      });
      let asked: ClientRequest | undefined;
      try {
        const { protocol } = new URL(url);
        if (protocol !== 'http:' && protocol !== 'https:') throw new Error(`${protocol} is not spoken`);
        asked = (protocol === 'http:' ? httpRequest : httpsRequest)(url, {
          method,
          headers: { ...headers, 'content-length': String(body === undefined ? 0 : Buffer.byteLength(body)) },
          agent: agents[protocol],
        });
      } catch (error) {
        return fail(error);
      }
      asked.on('error', fail);
      asked.on('response', (response) => {
        const chunks: Buffer[] = [];
        let size = 0;
        response.on('error', fail);
        response.on('data', (chunk: Buffer) => {
          if (size < answerMax) chunks.push(chunk);
          size += chunk.length;
        });
        response.on('end', () => {
          timer.cancel();
          const text = Buffer.concat(chunks).toString('utf8').slice(0, answerMax);
          const names = Object.entries(response.headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : value]);
          resolve({ status: response.statusCode ?? 0, headers: Object.fromEntries(names), text });
        });
      });
      asked.end(body);
    });
}
