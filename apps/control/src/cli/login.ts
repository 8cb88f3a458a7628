import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Clock, Random } from '@iris/runtime';

export interface SignedIn {
  readonly token: string;
  /** Milliseconds since 1970. */
  readonly expires_at: number;
}

const patience_ms = 5 * 60_000;

/**
 * Signs in at an OpenID Connect issuer: authorization code with PKCE, back to a port of this machine's own (RFC 8252).
 * @param open is given the address to open in a browser
 * @throws when nobody signs in within five minutes, or the issuer refuses
 */
export async function signIn(options: {
  issuer: string;
  client_id: string;
  scope: string;
  open: (url: string) => void;
  clock: Clock;
  random: Random;
}): Promise<SignedIn> {
  const { issuer, client_id, scope, clock } = options;
  const found = (await json(fetch(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`))) as Record<string, string>;
  const { authorization_endpoint, token_endpoint } = found;
  if (authorization_endpoint === undefined || token_endpoint === undefined) throw new Error(`${issuer} does not say where to sign in`);
  const random = () => Buffer.from(options.random.bytes(32)).toString('base64url');
  const [state, verifier] = [random(), random()];

  const server = createServer();
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve));
  const redirect_uri = `http://127.0.0.1:${(server.address() as AddressInfo).port}/signed-in`;
  try {
    const coming = new Promise<string>((resolve, reject) => {
      const timer = clock.after(patience_ms, () => reject(new Error('nobody signed in')));
      server.on('request', (request, response) => {
        const { pathname, searchParams } = new URL(request.url ?? '/', redirect_uri);
        if (pathname !== '/signed-in' || searchParams.get('state') !== state) return void response.writeHead(404).end();
        timer.cancel();
        response.writeHead(200, { 'content-type': 'text/plain' }).end('Signed in. You can close this page.\n');
        const code = searchParams.get('code');
        if (code === null) reject(new Error(`the issuer refused: ${searchParams.get('error') ?? 'no code'}`));
        else resolve(code);
      });
    });
    const challenge = createHash('sha256').update(verifier).digest('base64url');
    const asked = new URLSearchParams({
      response_type: 'code',
      client_id,
      redirect_uri,
      scope,
      state,
      code_challenge: challenge,
      code_challenge_method: 'S256',
    });
    options.open(`${authorization_endpoint}?${asked}`);
    const code = await coming;
    const form = new URLSearchParams({ grant_type: 'authorization_code', code, redirect_uri, client_id, code_verifier: verifier });
    const given = (await json(fetch(token_endpoint, { method: 'POST', body: form }))) as {
      id_token?: string;
      access_token?: string;
      expires_in?: number;
    };
    const token = given.id_token ?? given.access_token;
    if (token === undefined) throw new Error('the issuer gave no token');
    return { token, expires_at: clock.now() + (given.expires_in ?? 300) * 1_000 };
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

async function json(asking: Promise<Response>): Promise<unknown> {
  const response = await asking;
  if (!response.ok) throw new Error(`${response.url} answers ${response.status}`);
  return response.json();
}
