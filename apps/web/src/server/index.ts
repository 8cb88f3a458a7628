import { createReadStream, existsSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join, normalize, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Folder of the built page. */
const pageRoot = fileURLToPath(new URL('../../dist/page', import.meta.url));

const types: ReadonlyMap<string, string> = new Map([
  ['.html', 'text/html; charset=utf-8'],
  ['.js', 'text/javascript; charset=utf-8'],
  ['.css', 'text/css; charset=utf-8'],
  ['.svg', 'image/svg+xml'],
  ['.json', 'application/json'],
  ['.webmanifest', 'application/manifest+json'],
]);

/** Nothing from elsewhere runs in the page; sockets and answers may go anywhere, since the gateway's address is the user's choice. */
const headers = {
  'content-security-policy':
    "default-src 'self'; connect-src 'self' ws: wss: http: https:; img-src 'self' data: blob:; media-src 'self' blob:; style-src 'self' 'unsafe-inline'; object-src 'none'; base-uri 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
} as const;

/**
 * Serve the web client.
 * @param options.port 0 for a free one
 * @param options.root folder of the built page; for tests
 * @throws when the page has not been built, or the port is taken
 */
export async function startWeb(options: {
  host: string;
  port: number;
  root?: string;
}): Promise<{ readonly port: number; close(): Promise<void> }> {
  const { root = pageRoot } = options;
  if (!existsSync(join(root, 'index.html'))) throw new Error('the web client is not built: npm run build');
  const server = createServer((request, response) => {
    const path = pathOf(request.url ?? '/');
    const file = join(root, path === sep ? 'index.html' : path);
    if (path === '' || !file.startsWith(root + sep) || !existsSync(file) || !statSync(file).isFile()) {
      response.writeHead(404, { 'content-type': 'text/plain' }).end('not found\n');
      return;
    }
    const asset = path.startsWith(`${sep}assets${sep}`);
    response.writeHead(200, {
      ...headers,
      'content-type': types.get(extname(file)) ?? 'application/octet-stream',
      // Names of assets carry a hash of their content.
      'cache-control': asset ? 'public, max-age=31536000, immutable' : 'no-cache',
    });
    if (request.method === 'HEAD') response.end();
    else createReadStream(file).pipe(response);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, options.host, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** The path that a request names; empty when it cannot be read as one. */
function pathOf(url: string): string {
  try {
    const path = decodeURIComponent(new URL(url, 'http://page').pathname);
    // The file system takes no name with a zero in it.
    return path.includes('\0') ? '' : normalize(path);
  } catch {
    return '';
  }
}

/** The link that opens the page in a conversation. The token stands behind `#`, which browsers send to nobody. */
export function webLink(page: string, gateway: string, token: string): string {
  const link = new URL(page);
  link.searchParams.set('gateway', gateway);
  link.hash = new URLSearchParams({ token }).toString();
  return link.href;
}
