import type { Bus } from '@iris/bus';
import type { MediaStore } from '@iris/media';
import type { Outbox } from '@iris/outbox';
import { notFound, type Quotas, type TenantId } from '@iris/protocol';
import type { Clock, Gate, Log, Random, Seal } from '@iris/runtime';
import type { Archive, Store, TenantRow } from '@iris/store';
import type {
  FastifyBaseLogger,
  FastifyInstance,
  FastifyRequest,
  FastifyTypeProvider,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from 'fastify';
import type { Static, TSchema } from 'typebox';
import type { Actor, Actors, Needs } from './actor.js';
import type { Announcer } from './announce.js';
import { type Backends, createBackends } from './backends.js';

declare module 'fastify' {
  interface FastifyRequest {
    /** Set before any handler of `/v1` runs. */
    actor: Actor;
  }
  interface FastifyContextConfig {
    needs?: Needs | 'nobody';
  }
}

export interface ControlDeps {
  readonly store: Store;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** How far devices have come, and what goes when a tenant goes. Without it, rows say what they know. */
  readonly outbox?: Outbox;
  readonly media?: MediaStore;
  /** Whole tenants, in and out. Only where the store is Postgres. */
  readonly archive?: Archive;
}

/** What the routes work with. */
export interface Routing extends ControlDeps {
  readonly announcer: Announcer;
  readonly actors: Actors;
  readonly backends: Backends;
  /** Of tenants that have none of their own. */
  readonly quotas: Quotas;
  /** Where apps connect, for pairing: `wss://host/ws`. */
  readonly public_url: string | undefined;
  /** A token's secret: 32 random bytes, so that its plain SHA-256 is as safe as a slow hash of a password. */
  secret(): string;
  /**
   * The tenant that a request names, when whoever asks may know of it: another's reads as one that never was.
   * @throws RequestError `not_found`
   */
  tenant(request: Pick<FastifyRequest, 'actor'>, tenant_id: string): Promise<TenantRow>;
  /** Who did what, kept for good. */
  audit(request: Pick<FastifyRequest, 'actor'>, tenant_id: TenantId | null, action: string, subject: string): Promise<void>;
}

export function routing(
  deps: ControlDeps,
  {
    quotas,
    announcer,
    actors,
    public_url,
    ...held
  }: Pick<Routing, 'quotas' | 'announcer' | 'actors' | 'public_url'> & {
    seal: Seal | undefined;
    gate: Gate;
  },
): Routing {
  const { store, clock, random } = deps;
  const secret = () => Buffer.from(random.bytes(32)).toString('base64url');
  return {
    ...deps,
    announcer,
    actors,
    quotas,
    public_url,
    secret,
    backends: createBackends({ store, clock, random, secret, ...held }),
    async tenant({ actor }, tenant_id) {
      const row = actor.tenant_id === null || actor.tenant_id === tenant_id ? await store.tenants.get(tenant_id as TenantId) : undefined;
      if (row === undefined) throw notFound('tenant');
      return row;
    },
    audit: ({ actor }, tenant_id, action, subject) => store.audit.write({ tenant_id, at: clock.now(), actor: actor.name, action, subject }),
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
