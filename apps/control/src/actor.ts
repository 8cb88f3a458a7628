import { createHash, timingSafeEqual } from 'node:crypto';
import { RequestError, rateLimited, type TenantId, tenantOfAdminToken } from '@iris/protocol';
import { admit, type Clock, networkOf } from '@iris/runtime';
import { type AdminRole, type Store, tokenHash } from '@iris/store';
import type { Oidc } from './oidc.js';

/** Who asks, and what they may do. */
export interface Actor {
  /** For the audit: `bootstrap`, `oidc:<subject>`, `token:<token_id>`. */
  readonly name: string;
  readonly role: AdminRole;
  /** The one tenant of a tenant's own administrator; null: an operator, of all. */
  readonly tenant_id: TenantId | null;
}

/** What a route wants of whoever asks. */
export interface Needs {
  /** `read-only` may look, `admin` may change, `owner` may also give such rights and take a tenant out. */
  readonly role: AdminRole;
  /** Only operators: a tenant does not decide this about itself. */
  readonly operator?: true;
}

const rank: Readonly<Record<AdminRole, number>> = { 'read-only': 0, admin: 1, owner: 2 };

/** @throws RequestError `auth` */
export function checkMay(actor: Actor, { role, operator }: Needs): void {
  if (rank[actor.role] < rank[role] || (operator && actor.tenant_id !== null)) throw new Refused('not allowed');
}

/** Known, and not allowed: another status than for those whom nobody knows. */
export class Refused extends RequestError {
  constructor(message: string) {
    super('auth', message);
  }
}

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
/** Compares hashes, so neither time nor length tells anything about the right one. */
const same = (given: string, right: string): boolean => timingSafeEqual(digest(given), digest(right));

const failures = { per_minute: 10, burst: 20 };
const addressesMax = 10_000;
const goodMax = 1_000;

export interface Actors {
  /**
   * @param address of who asks, for counting failures
   * @throws RequestError `auth`; `rate_limited` after too many failures from that network, whatever is given then
   */
  of(authorization: string | undefined, address: string): Promise<Actor>;
  /** Somebody at this address gave a wrong code. @throws as `of` when there were too many before */
  attempt(address: string): { failed(): void };
}

export function actors(deps: { store: Store; clock: Clock; admin_token: string; oidc: Oidc | undefined }): Actors {
  const { store, clock, oidc } = deps;
  /** When each network's bucket is full again. */
  const buckets = new Map<string, number>();
  const good = new Set<string>();

  const attempt: Actors['attempt'] = (address) => {
    const network = networkOf(address);
    const next = admit(buckets.get(network) ?? 0, clock.now(), failures.per_minute / 60, failures.burst);
    if (next < 0) throw rateLimited('too many failures from this address', -next);
    return {
      failed() {
        buckets.delete(network);
        buckets.set(network, next);
        if (buckets.size > addressesMax) buckets.delete(buckets.keys().next().value!);
      },
    };
  };
  const known = async (token: string): Promise<Actor | undefined> => {
    if (same(token, deps.admin_token)) return { name: 'bootstrap', role: 'owner', tenant_id: null };
    const tenant_id = tenantOfAdminToken(token);
    if (tenant_id === undefined) return oidc?.actorOf(token);
    const hash = tokenHash(token);
    const row = await store.tokens.find(tenant_id, hash);
    const right = same(hash, row?.hash ?? '');
    if (!right || row?.kind !== 'admin' || row.role === null || row.revoked_at !== null) return undefined;
    if (row.expires_at !== null && row.expires_at <= clock.now()) return undefined;
    return { name: `token:${row.token_id}`, role: row.role, tenant_id };
  };
  return {
    attempt,
    async of(authorization, address) {
      const token = /^Bearer (.+)$/i.exec(authorization ?? '')?.[1];
      const mark = token === undefined ? '' : digest(token).toString('base64');
      // Who has a token that was good a moment ago does not guess; others at the address may.
      const trying = good.has(mark) ? undefined : attempt(address);
      const actor = token === undefined ? undefined : await known(token);
      if (actor !== undefined) {
        good.delete(mark);
        good.add(mark);
        if (good.size > goodMax) good.delete(good.values().next().value!);
        return actor;
      }
      good.delete(mark);
      if (token !== undefined) trying?.failed();
      throw new RequestError('auth', 'admin token missing or wrong');
    },
  };
}
