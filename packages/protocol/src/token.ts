import type { TenantId } from './ids.js';

/**
 * A token names its tenant, so that a request is routed and looked up inside one tenant without asking anyone first. The name proves
 * nothing: only the hash of the whole token, which the store has, does.
 */
export function makeToken(kind: 'device' | 'agent' | 'push' | 'admin', tenant_id: TenantId, secret: string): string {
  return `iris-${kind}.${tenant_id}.${secret}`;
}

/** The tenant a token claims to open; undefined when it is no token of ours. */
export function tenantOfToken(token: string): TenantId | undefined {
  return /^iris-(?:device|agent|push)\.([A-Za-z0-9_-]{1,64})\.[A-Za-z0-9_-]{16,256}$/.exec(token)?.[1] as TenantId | undefined;
}

/** …and an administrator's token. */
export function tenantOfAdminToken(token: string): TenantId | undefined {
  return /^iris-admin\.([A-Za-z0-9_-]{1,64})\.[A-Za-z0-9_-]{16,256}$/.exec(token)?.[1] as TenantId | undefined;
}
