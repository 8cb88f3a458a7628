import { type ClientRequest, Agent as HttpAgent, type IncomingMessage, request as overHttp } from 'node:http';
import { Agent as HttpsAgent, request as overHttps } from 'node:https';
import { type Gate, gate, OutOfReach, type Reach } from '@iris/runtime';

export interface HttpRequest {
  readonly method?: 'GET' | 'POST' | 'DELETE';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Ends the request at once, also in the middle of the answer. */
  readonly signal?: AbortSignal;
}

export interface HttpAnswer {
  readonly status: number;
  /** Undefined when it is not there. @param name in lower case */
  header(name: string): string | undefined;
  /** Rejects when the connection ends before the answer does. Leaving it early ends the connection. */
  readonly chunks: AsyncIterable<Uint8Array>;
}

/** One request. Rejects with `OutOfReach`, or with the network's own error; every status is an answer. */
export type Http = (url: string, request?: HttpRequest) => Promise<HttpAnswer>;

const redirects_max = 3;

/**
 * HTTP that stays within a {@link Reach}: the URL, each redirect, and every address a name stands for. Redirects are followed where
 * method and body stay the same; credentials do not follow to another origin.
 */
export function reachingHttp(reach: Reach, given?: Gate): Http & { close(): void } {
  const door = given ?? gate(reach);
  // Connections of their own: one that was made without these checks must not be used again.
  const agents = { http: new HttpAgent({ keepAlive: true }), https: new HttpsAgent({ keepAlive: true }) };

  const once = (url: URL, { method = 'GET', headers, body, signal }: HttpRequest): Promise<IncomingMessage> =>
    new Promise((resolve, reject) => {
      const secure = url.protocol === 'https:';
      const request: ClientRequest = (secure ? overHttps : overHttp)(url, {
        method,
        headers: { ...headers, ...(body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }) },
        agent: secure ? agents.https : agents.http,
        lookup: door.lookup,
        ...(signal === undefined ? {} : { signal }),
      });
      request.once('response', resolve);
      request.on('error', reject);
      request.end(body);
    });

  const http = async (address: Parameters<Http>[0], init: NonNullable<Parameters<Http>[1]> = {}): Promise<HttpAnswer> => {
    let url = parsed(address);
    let headers = init.headers ?? {};
    for (let followed = 0; ; followed++) {
      door.admit(url);
      const response = await once(url, { ...init, headers });
      const { statusCode: status = 0 } = response;
      const target = response.headers.location;
      if (![301, 302, 303, 307, 308].includes(status) || target === undefined) return answer(response, status);
      response.destroy();
      if (followed === redirects_max) throw new OutOfReach('too many redirects');
      const next = new URL(target, url);
      if ((init.method ?? 'GET') !== 'GET' && status < 307) throw new OutOfReach(`redirected to ${next.origin}: give that address instead`);
      if (next.origin !== url.origin) headers = withoutCredentials(headers);
      url = next;
    }
  };
  http.close = () => {
    agents.http.destroy();
    agents.https.destroy();
  };
  return http;
}

const answer = (response: IncomingMessage, status: number): HttpAnswer => ({
  status,
  header(name) {
    const value = response.headers[name];
    return Array.isArray(value) ? value.join(', ') : value;
  },
  chunks: response,
});

function parsed(address: string): URL {
  try {
    return new URL(address);
  } catch {
    throw new OutOfReach('the address is no URL');
  }
}

const withoutCredentials = (headers: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).filter(([name]) => !/^(authorization|cookie|x-api-key|api-key|x-hermes-session-key)$/i.test(name)),
  );

/** The answer's text, up to `max` bytes; what is longer is cut off. */
export async function textOf(answer: HttpAnswer, max: number): Promise<string> {
  const bytes = await bytesOf(answer, max);
  return new TextDecoder().decode(bytes.bytes);
}

export async function bytesOf(answer: HttpAnswer, max: number): Promise<{ bytes: Uint8Array; whole: boolean }> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of answer.chunks) {
    parts.push(chunk.subarray(0, max - size));
    size += chunk.length;
    if (size > max) return { bytes: Buffer.concat(parts), whole: false };
  }
  return { bytes: Buffer.concat(parts), whole: true };
}
