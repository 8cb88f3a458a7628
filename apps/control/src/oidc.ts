import { RequestError } from '@iris/protocol';
import type { Clock, Log } from '@iris/runtime';
import type { AdminRole } from '@iris/store';
import { createRemoteJWKSet, jwtVerify } from 'jose';
import type { Actor } from './actor.js';

export interface OidcConfig {
  readonly oidc_issuer?: string | undefined;
  readonly oidc_audience?: string | undefined;
  readonly oidc_role_claim: string;
  readonly oidc_client_id?: string | undefined;
}

/** Operators who signed in elsewhere. */
export interface Oidc {
  /** Undefined for a token that is not the issuer's, not for us, not in time, or that gives no role. */
  actorOf(token: string): Promise<Actor | undefined>;
  /** Where a browser signs in. @throws when the issuer cannot be asked */
  entrance(): Promise<{ readonly authorization_endpoint: string; readonly client_id: string; readonly scope: string }>;
  /** The token that a code stands for; undefined when it stands for none, or for one that opens nothing here. */
  exchange(given: { readonly code: string; readonly code_verifier: string; readonly redirect_uri: string }): Promise<string | undefined>;
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
  const client_id = config.oidc_client_id ?? audience;
  let found: Promise<Found & { keys: ReturnType<typeof createRemoteJWKSet> }> | undefined;
  const discovered = () => {
    found ??= discover(issuer).then((one) => ({ ...one, keys: createRemoteJWKSet(new URL(one.jwks_uri)) }));
    // Not for ever, when it cannot be reached now.
    found.catch(() => {
      found = undefined;
    });
    return found;
  };
  const self: Oidc = {
    async actorOf(token) {
      if (token.split('.').length !== 3) return undefined;
      try {
        const { payload } = await jwtVerify(token, (await discovered()).keys, {
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
    async entrance() {
      const { authorization_endpoint } = await discovered();
      if (authorization_endpoint === undefined) throw new RequestError('unsupported', 'the issuer signs nobody in by browser');
      return { authorization_endpoint, client_id, scope: 'openid profile' };
    },
    async exchange(given) {
      const { token_endpoint } = await discovered();
      if (token_endpoint === undefined) return undefined;
      const response = await fetch(token_endpoint, {
        method: 'POST',
        body: new URLSearchParams({ grant_type: 'authorization_code', client_id, ...given }),
        redirect: 'error',
        signal: AbortSignal.timeout(discovery_ms),
      });
      if (!response.ok) return undefined;
      const { access_token, id_token } = (await response.json()) as { access_token?: unknown; id_token?: unknown };
      for (const token of [access_token, id_token])
        if (typeof token === 'string' && (await self.actorOf(token)) !== undefined) return token;
      return undefined;
    },
  };
  return self;
}

interface Found {
  readonly jwks_uri: string;
  readonly authorization_endpoint?: string;
  readonly token_endpoint?: string;
}

async function discover(issuer: string): Promise<Found> {
  const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
  const response = await fetch(url, { signal: AbortSignal.timeout(discovery_ms) });
  if (!response.ok) throw new Error(`${url} answers ${response.status}`);
  const found = (await response.json()) as Partial<Record<keyof Found | 'issuer', unknown>>;
  if (found.issuer !== issuer || typeof found.jwks_uri !== 'string') throw new Error(`${url} is not of this issuer`);
  const { jwks_uri, authorization_endpoint, token_endpoint } = found;
  return {
    jwks_uri,
    ...(typeof authorization_endpoint === 'string' ? { authorization_endpoint } : {}),
    ...(typeof token_endpoint === 'string' ? { token_endpoint } : {}),
  };
}
