import type { Bus } from '@iris/bus';
import { notFound, type Quotas, type TenantId } from '@iris/protocol';
import type { Clock, Log, Random } from '@iris/runtime';
import type { Store, TenantRow } from '@iris/store';
import type {
  FastifyBaseLogger,
  FastifyInstance,
  FastifyTypeProvider,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from 'fastify';
import type { Static, TSchema } from 'typebox';
import type { Announcer } from './announce.js';

export interface ControlDeps {
  readonly store: Store;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
}

/** What the routes work with. */
export interface Routing extends ControlDeps {
  readonly announcer: Announcer;
  /** Of tenants that have none of their own. */
  readonly quotas: Quotas;
  /** A token's secret: 32 random bytes, so that its plain SHA-256 is as safe as a slow hash of a password. */
  secret(): string;
  /** @throws RequestError `not_found` */
  tenant(tenant_id: string): Promise<TenantRow>;
  /** Who did what, kept for good. */
  audit(tenant_id: TenantId, action: string, subject: string): Promise<void>;
}

export function routing(deps: ControlDeps, quotas: Quotas, announcer: Announcer): Routing {
  const { store, clock } = deps;
  return {
    ...deps,
    announcer,
    quotas,
    secret: () => Buffer.from(deps.random.bytes(32)).toString('base64url'),
    async tenant(tenant_id) {
      const row = await store.tenants.get(tenant_id as TenantId);
      if (row === undefined) throw notFound('tenant');
      return row;
    },
    audit: (tenant_id, action, subject) => store.audit.write({ tenant_id, at: clock.now(), actor: 'admin', action, subject }),
  };
}

/** Handlers are typed by the schemas that check what they get. */
interface BySchema extends FastifyTypeProvider {
  readonly validator: this['schema'] extends TSchema ? Static<this['schema']> : unknown;
  readonly serializer: this['schema'] extends TSchema ? Static<this['schema']> : unknown;
}
export type Api = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression<RawServerDefault>,
  RawReplyDefaultExpression<RawServerDefault>,
  FastifyBaseLogger,
  BySchema
>;
