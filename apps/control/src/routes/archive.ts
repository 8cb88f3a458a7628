import type { Readable } from 'node:stream';
import { type AgentId, makeToken, RequestError, type TenantId, type TokenId } from '@iris/protocol';
import { randomId } from '@iris/runtime';
import { tokenHash } from '@iris/store';
import { formatVersion, packTenant, unpackTenant } from '../archive.js';
import type { Api, Routing } from '../control.js';
import { Imported, Receipt, TenantParams } from '../schemas.js';
import { operators, own } from './admin-roles.js';

const mime = 'application/gzip';
/** Edges and sessions have heard of it, and what they had under way is through. */
const quiet_ms = 500;

/** A tenant as a whole: out, in, and gone for good. */
export function archiveRoutes(api: Api, routes: Routing): void {
  const { store, archive, backends, media, outbox, clock, random, secret, announcer, tenant, audit, log } = routes;
  const tags = ['tenants'];
  const needed = () => {
    if (archive === undefined) throw new RequestError('unsupported', 'archives need Postgres');
    return archive;
  };
  api.addContentTypeParser([mime, 'application/octet-stream'], (_request, payload, done) => done(null, payload));

  api.get(
    '/v1/tenants/:tenant_id/export',
    {
      config: own,
      schema: {
        tags,
        summary: 'Everything of a tenant as a gzip’d tar: messages, channels, files. See docs/archive.md',
        params: TenantParams,
        produces: [mime],
      },
    },
    async (request, reply) => {
      const { tenant_id, name } = await tenant(request, request.params.tenant_id);
      const from = needed();
      await audit(request, tenant_id, 'tenant.export', tenant_id);
      const manifest = { format: 'iris-tenant', version: formatVersion, tenant_id, name, exported_at: clock.now() } as const;
      reply.type(mime).header('content-disposition', `attachment; filename="${tenant_id}.iris.tar.gz"`);
      return reply.send(packTenant({ archive: from, media, manifest }));
    },
  );

  api.post(
    '/v1/tenants/import',
    {
      bodyLimit: Number.MAX_SAFE_INTEGER,
      config: operators.own,
      schema: {
        tags,
        summary: 'A tenant from an archive, under its own id when that is free, with new tokens',
        consumes: [mime],
        response: { 201: Imported },
      },
    },
    async (request, reply) => {
      const into = needed();
      let tenant_id: TenantId | undefined;
      try {
        const unpacked = await unpackTenant(request.body as Readable, {
          archive: into,
          media,
          async begin(manifest) {
            const taken = (await store.tenants.get(manifest.tenant_id as TenantId)) !== undefined;
            const given = /^[A-Za-z0-9_-]{1,64}$/.test(manifest.tenant_id) && !taken ? manifest.tenant_id : randomId(random, 12);
            tenant_id = given as TenantId;
            await store.tenants.create({
              tenant_id,
              name: manifest.name,
              agent_id: `ag_${randomId(random, 12)}` as AgentId,
              at: clock.now(),
            });
            // Nobody comes in before everything is there; and what every new tenant has, the archive has its own of.
            await store.tenants.setState(tenant_id, 'suspended');
            await into.clear(tenant_id);
            return tenant_id;
          },
        });
        const made = tenant_id!;
        const agents = await store.agents.list(made);
        const agent_id = (agents.find(({ is_default }) => is_default) ?? agents[0])?.agent_id ?? null;
        const device_token = makeToken('device', made, secret());
        const agent_token = makeToken('agent', made, secret());
        const token = { tenant_id: made, device_id: null, created_at: clock.now() };
        await store.tokens.create({ ...token, token_id: tokenId(), kind: 'device', hash: tokenHash(device_token), agent_id: null });
        await store.tokens.create({ ...token, token_id: tokenId(), kind: 'agent', hash: tokenHash(agent_token), agent_id });
        const waiting_backends = await backends.restore(made);
        await store.tenants.setState(made, 'active');
        await audit(request, made, 'tenant.import', made);
        await announcer.announce({ kind: 'rerouted', tenant_id: made });
        const rows = Object.fromEntries(unpacked.rows);
        return reply.code(201).send({ tenant_id: made, device_token, agent_token, waiting_backends, rows, files: unpacked.files });
      } catch (error) {
        // A part of a tenant is none.
        if (tenant_id !== undefined) {
          await media
            ?.removeTenant(tenant_id)
            .catch((fault: unknown) => log.warn('control.import_left_files', { tenant_id, error: fault }));
          await store.tenants.remove(tenant_id);
        }
        throw error;
      }
    },
  );

  api.delete(
    '/v1/tenants/:tenant_id',
    {
      config: operators.own,
      schema: {
        tags,
        summary: 'Delete a tenant for good, with a receipt of what each store confirmed',
        params: TenantParams,
        response: { 200: Receipt },
      },
    },
    async (request) => {
      const { tenant_id } = await tenant(request, request.params.tenant_id);
      await audit(request, tenant_id, 'tenant.delete', tenant_id);
      // First nobody comes in and everyone goes, so that nothing is written behind those who remove.
      await store.tenants.setState(tenant_id, 'suspended');
      await announcer.announce({ kind: 'changed', tenant_id, what: 'tenant' });
      await announcer.announce({ kind: 'changed', tenant_id, what: 'tokens' });
      await announcer.announce({ kind: 'revoked', tenant_id });
      await new Promise<void>((resolve) => void clock.after(quiet_ms, () => resolve()));
      const removed = await archive?.count(tenant_id);
      // The row of the tenant last: until then all of this can be asked for again.
      await outbox?.drop(tenant_id);
      await media?.removeTenant(tenant_id);
      await store.tenants.remove(tenant_id);
      await outbox?.drop(tenant_id);
      const left = await archive?.count(tenant_id);
      const receipt = {
        tenant_id,
        deleted_at: clock.now(),
        stores: {
          sockets: { told: true as const },
          outbox: { removed: outbox !== undefined },
          media: { removed: media !== undefined, files: removed?.get('media') ?? 0 },
          rows: { removed: Object.fromEntries(removed ?? []), left: Object.fromEntries(left ?? []) },
        },
      };
      await audit(request, null, 'tenant.deleted', JSON.stringify(receipt));
      return receipt;
    },
  );

  const tokenId = () => `tk_${randomId(random, 12)}` as TokenId;
}
