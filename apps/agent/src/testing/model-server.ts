import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** One request to the scripted server, answered by the test. */
export interface Exchange {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  /** The body as JSON. */
  readonly body: Record<string, unknown>;
  /** Text of the answer's body as it is, after the head of an event stream when none was sent. */
  raw(text: string): Promise<void>;
  /** One event of the stream. */
  event(data: object | string, event?: string): Promise<void>;
  /** A chunk with this text. */
  text(content: string): Promise<void>;
  /** The last chunk, usage, `[DONE]`, and the end. */
  done(usage?: object): Promise<void>;
  end(): void;
  answer(status: number, body: object | string, headers?: Record<string, string>): void;
  /** The connection breaks. */
  drop(): void;
  /** The other side has gone. */
  readonly gone: Promise<unknown>;
}

/** A server on the loopback that answers nothing by itself, but for what `routes` say. */
export interface ModelServer {
  readonly url: string;
  readonly host: string;
  /** Path → what it answers at once, as JSON. */
  readonly routes: Map<string, object>;
  /** Requests so far, also those that a route answered. */
  readonly seen: readonly { readonly method: string; readonly path: string; readonly headers: IncomingMessage['headers'] }[];
  /** The next request that no route answers; with a path, the next one to it. */
  next(path?: string): Promise<Exchange>;
  close(): Promise<void>;
}

export async function modelServer(): Promise<ModelServer> {
  const waiting: Exchange[] = [];
  const takers: { path: string | undefined; take: (exchange: Exchange) => void }[] = [];
  const seen: { method: string; path: string; headers: IncomingMessage['headers'] }[] = [];
  const routes = new Map<string, object>([
    ['/v1/models', { object: 'list', data: [{ id: 'acme/tiny-1', context_length: 1_000 }, { id: 'plain' }] }],
  ]);

  const server = createServer((request, response) => {
    void receive(request, response);
  });
  async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url = '', headers } = request;
    let text = '';
    for await (const chunk of request) text += String(chunk);
    seen.push({ method, path: url, headers });
    const route = method === 'GET' ? routes.get(url) : undefined;
    if (route) return void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(route));
    const exchange = exchangeOf(request, response, text);
    const at = takers.findIndex(({ path }) => path === undefined || path === url);
    if (at < 0) waiting.push(exchange);
    else takers.splice(at, 1)[0]!.take(exchange);
  }
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    host,
    url: `http://${host}/v1`,
    routes,
    seen,
    next(path) {
      const at = waiting.findIndex((exchange) => path === undefined || exchange.path === path);
      return at < 0 ? new Promise((take) => takers.push({ path, take })) : Promise.resolve(waiting.splice(at, 1)[0]!);
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

function exchangeOf(request: IncomingMessage, response: ServerResponse, text: string): Exchange {
  const head = () => {
    if (!response.headersSent) response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
  };
  const raw = (data: string): Promise<void> => {
    head();
    return new Promise((resolve) => response.write(data, () => resolve()));
  };
  const exchange: Exchange = {
    method: request.method ?? '',
    path: request.url ?? '',
    headers: request.headers,
    body: text === '' ? {} : (JSON.parse(text) as Record<string, unknown>),
    raw,
    event: (data, event) =>
      raw(`${event === undefined ? '' : `event: ${event}\n`}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`),
    text: (content) => exchange.event({ model: 'acme/tiny-1', choices: [{ index: 0, delta: { content } }] }),
    async done(usage) {
      await exchange.event({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] });
      if (usage) await exchange.event({ choices: [], usage });
      await exchange.event('[DONE]');
      response.end();
    },
    end: () => void response.end(),
    answer: (status, body, headers = {}) =>
      void response
        .writeHead(status, { 'content-type': typeof body === 'string' ? 'text/plain' : 'application/json', ...headers })
        .end(typeof body === 'string' ? body : JSON.stringify(body)),
    drop: () => void request.socket.destroy(),
    gone: once(response, 'close'),
  };
  return exchange;
}
