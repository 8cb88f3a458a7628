import { type DeviceId, makeToken, notFound, type TokenId } from '@iris/protocol';
import { randomId } from '@iris/runtime';
import { tokenHash } from '@iris/store';
import type { Api, Routing } from '../control.js';
import { NewPairing, Paired, PairingCreated, PairingUse, TenantParams } from '../schemas.js';
import { change } from './admin-roles.js';

/** Read aloud and typed without mistakes: no letter that looks like another. 12 of them are 59 bits, for ten minutes, once. */
const letters = '23456789ABCDEFGHJKMNPQRSTVWXYZ';
const codeLength = 12;
const code_ms = 10 * 60 * 1000;

/** As it is typed, without regard to case and dashes. */
const plain = (code: string): string => code.toUpperCase().replaceAll(/[^0-9A-Z]/g, '');
const codeHash = (code: string): string => tokenHash(`iris-pair.${plain(code)}`);

/** Pairing: a one-time code for an app, which exchanges it for a token of its own device. */
export function pairingRoutes(api: Api, { store, clock, random, secret, actors, public_url, tenant, audit }: Routing): void {
  const tags = ['pairing'];

  api.post(
    '/v1/tenants/:tenant_id/pairings',
    {
      config: change,
      schema: {
        tags,
        summary: 'A one-time code for a new device',
        params: TenantParams,
        body: NewPairing,
        response: { 201: PairingCreated },
      },
    },
    async (request, reply) => {
      const { tenant_id } = await tenant(request, request.params.tenant_id);
      const code = [...random.bytes(256)]
        // Each letter as likely as another.
        .filter((byte) => byte < 256 - (256 % letters.length))
        .slice(0, codeLength)
        .map((byte) => letters[byte % letters.length])
        .join('');
      const { label = '', valid_ms = code_ms } = request.body;
      const created_at = clock.now();
      const expires_at = created_at + valid_ms;
      await store.pairings.create({ tenant_id, code_hash: codeHash(code), label, created_at, expires_at });
      await audit(request, tenant_id, 'pairing.create', label);
      const shown = code.replace(/(.{4})(?=.)/g, '$1-');
      const link = new URLSearchParams({
        code: shown,
        api: `${request.protocol}://${request.host}`,
        ...(public_url === undefined ? {} : { gateway: public_url }),
      });
      return reply.code(201).send({ code: shown, link: `iris://pair?${link}`, expires_at });
    },
  );

  api.post(
    '/v1/pair',
    {
      config: { needs: 'nobody' },
      schema: { tags, summary: 'Exchange a code for a token of this device', security: [], body: PairingUse, response: { 201: Paired } },
    },
    async (request, reply) => {
      const trying = actors.attempt(request.ip);
      const device_id = request.body.device_id as DeviceId;
      const used = await store.pairings.use(codeHash(request.body.code), device_id, clock.now());
      const tenant_id = used?.tenant_id;
      const standing = tenant_id === undefined ? undefined : await store.tenants.get(tenant_id);
      if (used === undefined || tenant_id === undefined || standing?.state !== 'active') {
        trying.failed();
        throw notFound('code');
      }
      const token_id = `tk_${randomId(random, 12)}` as TokenId;
      const token = makeToken('device', tenant_id, secret());
      const { label } = used;
      await store.tokens.create({
        tenant_id,
        token_id,
        kind: 'device',
        hash: tokenHash(token),
        device_id,
        agent_id: null,
        label,
        created_at: clock.now(),
      });
      await audit({ actor: { name: `device:${device_id}`, role: 'read-only', tenant_id } }, tenant_id, 'pairing.use', token_id);
      return reply.code(201).send({ tenant_id, token_id, token, ...(public_url === undefined ? {} : { gateway: public_url }) });
    },
  );
}
