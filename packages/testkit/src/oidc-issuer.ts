import { createHash, randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';

/** An OpenID Connect issuer of the test's own, on this machine, with real keys. */
export interface OidcIssuer {
  readonly issuer: string;
  /** A token of its own; the options make it wrong on purpose. */
  token(claims: JWTPayload, options?: { expires?: string; key?: 'mine' | 'another' }): Promise<string>;
  /** A new key signs from now on; the old one is published no more. */
  rotate(): Promise<void>;
  close(): Promise<void>;
}

/** @param signedIn claims of whoever signs in through a browser: everyone is let in */
export async function oidcIssuer(signedIn: JWTPayload = {}): Promise<OidcIssuer> {
  let pair = await generateKeyPair('ES256');
  const stranger = await generateKeyPair('ES256');
  let kid = randomUUID();
  const codes = new Map<string, { challenge: string; client_id: string; redirect_uri: string }>();

  const authorize = (asked: URLSearchParams): { location: string } | undefined => {
    if (asked.get('code_challenge_method') !== 'S256') return undefined;
    const code: string = randomUUID();
    const redirect_uri = asked.get('redirect_uri') ?? '';
    codes.set(code, { challenge: asked.get('code_challenge') ?? '', client_id: asked.get('client_id') ?? '', redirect_uri });
    const back = new URL(redirect_uri);
    back.searchParams.set('code', code);
    back.searchParams.set('state', asked.get('state') ?? '');
    return { location: back.href };
  };
  const exchange = async (form: URLSearchParams): Promise<object | undefined> => {
    const code = form.get('code') ?? '';
    const known = codes.get(code);
    codes.delete(code);
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url');
    if (known === undefined || known.challenge !== challenge || known.redirect_uri !== form.get('redirect_uri')) return undefined;
    return { id_token: await self.token({ aud: known.client_id, ...signedIn }), token_type: 'Bearer', expires_in: 600 };
  };
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', issuer);
    const answer = (status: number, body: object) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    switch (pathname) {
      case '/.well-known/openid-configuration': {
        const at = (path: string) => `${issuer}/${path}`;
        return answer(200, { issuer, jwks_uri: at('keys'), authorization_endpoint: at('authorize'), token_endpoint: at('token') });
      }
      case '/keys':
        return answer(200, { keys: [{ ...(await exportJWK(pair.publicKey)), kid, alg: 'ES256', use: 'sig' }] });
      case '/authorize': {
        const back = authorize(searchParams);
        return back === undefined ? answer(400, { error: 'invalid_request' }) : response.writeHead(302, back).end();
      }
      case '/token': {
        const chunks: Buffer[] = [];
        for await (const chunk of request) chunks.push(chunk as Buffer);
        const given = await exchange(new URLSearchParams(Buffer.concat(chunks).toString()));
        return given === undefined ? answer(400, { error: 'invalid_grant' }) : answer(200, given);
      }
      default:
        return answer(404, {});
    }
  };
  const server = createServer((request, response) => {
    handle(request, response).catch((error: unknown) => response.writeHead(500).end(String(error)));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const self: OidcIssuer = {
    issuer,
    token: (claims, { expires = '10m', key = 'mine' } = {}) =>
      new SignJWT({ sub: 'someone', ...claims })
        .setProtectedHeader({ alg: 'ES256', kid })
        .setIssuer(claims.iss ?? issuer)
        .setIssuedAt()
        .setExpirationTime(expires)
        .sign(key === 'mine' ? pair.privateKey : stranger.privateKey),
    async rotate() {
      pair = await generateKeyPair('ES256');
      kid = randomUUID();
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return self;
}
