import type { Clock, Log } from '@iris/runtime';
import type { AdminRole } from '@iris/store';
import { createRemoteJWKSet, jwtVerify } from 'jose';
import type { Actor } from './actor.js';

export interface OidcConfig {
  readonly oidc_issuer?: string | undefined;
  readonly oidc_audience?: string | undefined;
  readonly oidc_role_claim: string;
}

/** Operators who signed in elsewhere. */
export interface Oidc {
  /** Undefined for a token that is not the issuer's, not for us, not in time, or that gives no role. */
  actorOf(token: string): Promise<Actor | undefined>;
}

const roles = new Map<unknown, AdminRole>([
  ['iris-owner', 'owner'],
  ['iris-admin', 'admin'],
  ['iris-read-only', 'read-only'],
]);
/** Nothing that a signature could not be checked for, and nothing symmetric. */
const algorithms = ['RS256', 'PS256', 'ES256', 'EdDSA'];
const discovery_ms = 5_000;

/**
 * An OpenID Connect issuer whose tokens open the API: signed by it, for our audience, with one of `iris-owner`, `iris-admin`, `iris-read-only`
 * in the claim of roles. Its keys are found by discovery when the first token comes, and again when a key is new.
 */
export function oidcFrom(config: OidcConfig, { clock, log }: { clock: Clock; log: Log }): Oidc | undefined {
  const { oidc_issuer: issuer, oidc_audience: audience, oidc_role_claim } = config;
  if (issuer === undefined || audience === undefined) return undefined;
  let keys: Promise<ReturnType<typeof createRemoteJWKSet>> | undefined;
  const keysOf = () => {
    keys ??= discover(issuer).then((url) => createRemoteJWKSet(new URL(url)));
    // Not for ever, when it cannot be reached now.
    keys.catch(() => {
      keys = undefined;
    });
    return keys;
  };
  return {
    async actorOf(token) {
      if (token.split('.').length !== 3) return undefined;
      try {
        const { payload } = await jwtVerify(token, await keysOf(), {
          issuer,
          audience,
          algorithms,
          currentDate: new Date(clock.now()),
          requiredClaims: ['exp', 'sub'],
        });
        const claim = payload[oidc_role_claim];
        const given = (Array.isArray(claim) ? (claim as unknown[]) : [claim]).map((one) => roles.get(one));
        const role = (['owner', 'admin', 'read-only'] as const).find((one) => given.includes(one));
        return role === undefined ? undefined : { name: `oidc:${payload.sub}`, role, tenant_id: null };
      } catch (error) {
        log.warn('control.oidc_refused', { reason: (error as Error).message });
        return undefined;
      }
    },
  };
}

async function discover(issuer: string): Promise<string> {
  const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
  const response = await fetch(url, { signal: AbortSignal.timeout(discovery_ms) });
  if (!response.ok) throw new Error(`${url} answers ${response.status}`);
  const found = (await response.json()) as { issuer?: unknown; jwks_uri?: unknown };
  if (found.issuer !== issuer || typeof found.jwks_uri !== 'string') throw new Error(`${url} is not of this issuer`);
  return found.jwks_uri;
}
