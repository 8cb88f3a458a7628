import { createHash } from 'node:crypto';
import type { DeviceId, TenantId } from '@iris/protocol';
import type { EdgeContext } from './context.js';

const tokensMax = 10_000;
export const digest = (token: string): string => createHash('sha256').update(token).digest('base64');

/** Bounded: the longest unseen goes. */
export function remember(tokens: Set<string>, one: string): void {
  tokens.delete(one);
  tokens.add(one);
  if (tokens.size > tokensMax) tokens.delete(tokens.values().next().value!);
}

/** Whether a hello was answered from what was true before a revocation that this edge has heard since. */
export const wasRevoked = (edge: EdgeContext, tenant_id: TenantId, token_id: string, device_id?: DeviceId): boolean =>
  edge.revoked.some(
    (one) =>
      one.tenant_id === tenant_id &&
      (one.token_id === undefined || one.token_id === token_id) &&
      (one.device_id === undefined || one.device_id === device_id),
  );
