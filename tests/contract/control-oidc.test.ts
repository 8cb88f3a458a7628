import { createHash } from 'node:crypto';
import { memoryHub } from '@iris/bus';
import { type Api, buildApi, defaultControlConfig } from '@iris/control';
import { silentLog, systemClock, systemRandom } from '@iris/runtime';
import { memoryStore, type Store } from '@iris/store';
import { type OidcIssuer, oidcIssuer } from '@iris/testkit';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { signIn } from '../../apps/control/src/cli/login.js';

describe('operators sign in by OpenID Connect', () => {
  let issuer: OidcIssuer;
  let api: Api;
  let store: Store;
  let url: string;
  const aud = 'iris';

  beforeAll(async () => {
    issuer = await oidcIssuer({ roles: ['iris-admin'], sub: 'ada' });
    store = memoryStore();
    const deps = { store, bus: memoryHub({ clock: systemClock }).connect(), clock: systemClock, random: systemRandom, log: silentLog };
    const config = { ...defaultControlConfig, admin_token: 'admin-token-of-the-test', oidc_issuer: issuer.issuer, oidc_audience: aud };
    api = await buildApi(deps, config);
    url = await api.listen({ port: 0, host: '127.0.0.1' });
  });
  afterAll(async () => {
    await api?.close();
    await issuer?.close();
  });
  const status = async (token: string, method = 'GET', path = '/v1/tenants', body?: object) =>
    (
      await fetch(`${url}${path}`, {
        method,
        headers: { authorization: `Bearer ${token}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
    ).status;

  test('in a browser, with PKCE, back to a port of this machine; who did it stands in the audit', async () => {
    const open = (at: string) => void fetch(at).then((response) => response.text());
    const signed = await signIn({ issuer: issuer.issuer, client_id: aud, scope: 'openid', open, clock: systemClock, random: systemRandom });
    expect(await status(signed.token, 'POST', '/v1/tenants', { name: 'Made by Ada' })).toBe(201);
    const [tenant] = await store.tenants.list({ limit: 1 });
    expect(await store.audit.list(tenant!.tenant_id, 1)).toMatchObject([{ actor: 'oidc:ada', action: 'tenant.create' }]);
  });

  test('on the docs page: the code that the issuer gave becomes a token that opens the API; another’s code, or without its secret, becomes none', async () => {
    const entrance = (await (await fetch(`${url}/docs/sign-in`)).json()) as { authorization_endpoint: string; client_id: string };
    expect(entrance.client_id).toBe(aud);
    const redirect_uri = `${url}/docs`;
    const code_verifier = 'v'.repeat(43);
    const codeOf = async () => {
      const at = new URL(entrance.authorization_endpoint);
      const code_challenge = createHash('sha256').update(code_verifier).digest('base64url');
      const asked = { client_id: entrance.client_id, redirect_uri, state: 's', code_challenge, code_challenge_method: 'S256' };
      for (const [name, value] of Object.entries(asked)) at.searchParams.set(name, value);
      return new URL((await fetch(at, { redirect: 'manual' })).headers.get('location')!).searchParams.get('code')!;
    };
    const exchange = async (body: object) => {
      const response = await fetch(redirect_uri.replace(/docs$/, 'docs/sign-in'), {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
      return { status: response.status, said: (await response.json()) as { token?: string } };
    };
    const code = await codeOf();
    const { status: good, said } = await exchange({ code, code_verifier, redirect_uri });
    expect(good).toBe(200);
    expect(await status(said.token!)).toBe(200);
    expect((await exchange({ code, code_verifier, redirect_uri })).status).toBe(401);
    expect((await exchange({ code: await codeOf(), code_verifier: 'w'.repeat(43), redirect_uri })).status).toBe(401);
    expect((await exchange({ code: 'made up', code_verifier, redirect_uri })).status).toBe(401);
    expect((await exchange({ code: 1, code_verifier })).status).toBe(400);
  });

  test('roles are those of the claim; without one it opens nothing', async () => {
    const make = (roles: unknown) => issuer.token({ aud, roles });
    const create = async (roles: unknown) => status(await make(roles), 'POST', '/v1/tenants', { name: 'x' });
    expect([await create('iris-owner'), await create(['other', 'iris-admin']), await create(['iris-read-only'])]).toEqual([201, 201, 403]);
    expect([await create([]), await create(undefined), await create('owner'), await create({ 'iris-owner': true })]).toEqual([
      401, 401, 401, 401,
    ]);
  });

  test.each<[string, () => Promise<string>]>([
    ['for somebody else', () => issuer.token({ aud: 'other', roles: 'iris-owner' })],
    ['of another issuer', () => issuer.token({ aud, iss: 'https://elsewhere.example', roles: 'iris-owner' })],
    ['out of time', () => issuer.token({ aud, roles: 'iris-owner' }, { expires: '-1m' })],
    ['signed by a stranger', () => issuer.token({ aud, roles: 'iris-owner' }, { key: 'another' })],
    [
      'without a signature',
      async () => {
        const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
        return `${part({ alg: 'none' })}.${part({ iss: issuer.issuer, aud, sub: 'x', exp: 4_000_000_000, roles: 'iris-owner' })}.`;
      },
    ],
    [
      'changed afterwards',
      async () => (await issuer.token({ aud, roles: 'iris-read-only' })).replace(/\.[^.]+\./, (body) => `${body.slice(0, -2)}x.`),
    ],
  ])('a token %s opens nothing', async (_, make) => {
    expect(await status(await make())).toBe(401);
  });
});
