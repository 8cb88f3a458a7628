import { type DeviceId, makeToken, type TenantId, type TokenId } from '@iris/protocol';
import { tokenHash } from '@iris/store';
import type { Admin, Door, Target } from '../conformance/target.js';
import type { Dial } from '../wire.js';
import { makeTenant, type Tenancy } from './tenant.js';
import type { World } from './world.js';

/**
 * A world, as the conformance kit asks it: its edges are doors, and its store makes tenants.
 * @param between stands between the kit and what devices are told, to break it
 */
export async function conformanceTarget(world: World, between: (dial: Dial) => Dial = (dial) => dial): Promise<Target> {
  const { store, time } = world;
  let tenants = 0;
  let tokens = 0;
  const tenant = (quotas?: Readonly<Record<string, number>>): Promise<Tenancy> =>
    makeTenant(store, `conformance${++tenants}`, { at: time.now(), ...(quotas === undefined ? {} : { quotas }) });
  const admin: Admin = {
    tenant,
    async token(tenant_id, kind, device_id) {
      const token_id = `token-${++tokens}`;
      const token = makeToken(kind, tenant_id as TenantId, `secret-of-${token_id}`.padEnd(32, '0'));
      await store.tokens.create({
        tenant_id: tenant_id as TenantId,
        token_id: token_id as TokenId,
        kind,
        hash: tokenHash(token),
        device_id: (device_id as DeviceId | undefined) ?? null,
        agent_id: null,
        created_at: time.now(),
      });
      return { token_id, token };
    },
  };
  const { device_token, agent_token } = await tenant();
  return {
    doors: world.edges.map(
      ({ name, links }): Door => ({
        name,
        device: between(links.dial('/ws')),
        agent: (token) => links.dial('/agent', token === undefined ? {} : { token }),
      }),
    ),
    patience: world.patience,
    device_token,
    agent_token,
    admin,
    slack_ms: 500,
  };
}
