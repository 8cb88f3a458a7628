import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Clock } from '@iris/runtime';
import { type FakeFcm, fakeFcm } from './fake-fcm.js';
import { type FakeNtfy, fakeNtfy, ntfyAccess } from './fake-ntfy.js';
import { type FakeWebPush, fakeWebPush } from './fake-webpush.js';
import type { ProviderAnswer, ProviderRequest } from './provider.js';

/** One of each provider, at `base`, `/fcm`, `/ntfy` and `/webpush` below it. */
export interface Fakes {
  readonly base: string;
  readonly fcm: FakeFcm;
  readonly ntfy: FakeNtfy;
  readonly webpush: FakeWebPush;
  /** What parts are told so that they push to these, by the names of their settings. */
  readonly settings: Readonly<Record<string, unknown>>;
  handle(request: ProviderRequest): Promise<ProviderAnswer | undefined>;
}

export function fakes(clock: Clock, base: string): Fakes {
  const fcm = fakeFcm(clock);
  const ntfy = fakeNtfy(clock);
  const webpush = fakeWebPush(clock, [new URL(base).origin]);
  const at: Readonly<Record<string, { handle(request: ProviderRequest): Promise<ProviderAnswer | undefined> }>> = { fcm, ntfy, webpush };
  return {
    base,
    fcm,
    ntfy,
    webpush,
    get settings() {
      return {
        push_providers: ['fcm', 'webpush', 'ntfy'],
        push_fcm_url: `${base}/fcm`,
        push_fcm_account: fcm.account(`${base}/fcm`),
        push_vapid_public_key: webpush.vapid.public_key,
        push_vapid_private_key: webpush.vapid.private_key,
        push_vapid_subject: webpush.vapid.subject,
        push_webpush_hosts: [new URL(base).origin],
        push_ntfy_url: `${base}/ntfy`,
        push_ntfy_token: ntfyAccess,
      };
    },
    async handle(request) {
      const [, name = '', rest = ''] = /^\/([^/]+)(\/?.*)$/.exec(request.path) ?? [];
      return at[name]?.handle({ ...request, path: rest === '' ? '/' : rest }) ?? { status: 404 };
    },
  };
}

interface Request {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
}

/**
 * What a worker asks providers with, in a world: requests are under way for a while and arrive also when their process dies meanwhile;
 * its answers are heard only by the living.
 */
export function worldHttp(options: { fakes: Fakes; process: Clock & { readonly alive: boolean }; net: Clock; way_ms: () => number }) {
  const { process, net, way_ms } = options;
  return (request: Request, { timeout_ms }: { timeout_ms: number }) =>
    new Promise<{ status: number; headers: Record<string, string>; text: string }>((resolve, reject) => {
      if (!process.alive) return;
      const body = typeof request.body === 'string' ? new TextEncoder().encode(request.body) : (request.body ?? new Uint8Array());
      const timer = process.after(timeout_ms, () => reject(new Error(`no answer within ${timeout_ms} ms`)));
      net.after(way_ms(), async () => {
        const path = request.url.slice(options.fakes.base.length);
        const answer = await options.fakes.handle({ method: request.method, path, headers: request.headers, body });
        if (answer === undefined) return;
        net.after(way_ms(), () => {
          if (!process.alive) return;
          timer.cancel();
          process.soon(() => resolve({ status: answer.status, headers: { ...answer.headers }, text: answer.body ?? '' }));
        });
      });
    });
}

/** The same on a real socket, for real processes. */
export async function serveFakes(clock: Clock): Promise<Fakes & { close(): Promise<void> }> {
  let made: Fakes | undefined;
  const server: Server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]));
      const asked = { method: request.method ?? '', path: request.url ?? '', headers, body: new Uint8Array(Buffer.concat(chunks)) };
      made!.handle(asked).then(
        (answer) => {
          // One that never answers keeps the socket open until the other side gives up.
          if (answer !== undefined) response.writeHead(answer.status, { ...answer.headers }).end(answer.body ?? '');
        },
        () => response.writeHead(500).end(),
      );
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  made = fakes(clock, `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  return {
    ...made,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
