import { isMediaAsk } from '@iris/bus';
import { rowOf, type TenantId } from '@iris/protocol';
import { fairPlaces } from '@iris/runtime';
import type { SessionConfig } from './config.js';
import type { Request } from './line.js';

/** An eighth is always for others: who comes to an instance that one tenant keeps busy does not even wait. */
const mostOf = (places: number) => Math.max(1, Math.floor((places * 7) / 8));

/** Begins a request's work when it is its tenant's turn. */
export type Turnstile = <R>(request: Request, work: () => Promise<R>) => Promise<R>;

/**
 * Between the tenants of one instance: while there is room, nobody waits; when there is none, who is next goes by the tenants' weights, and no
 * tenant has all of it. What is asked of the stores costs them more than what is told them, so it has places of its own; so have
 * hellos, since whose they are is not yet proven.
 */
export function createTurnstile(
  config: Pick<SessionConfig, 'requests_at_once' | 'reads_at_once' | 'hellos_at_once'>,
  weightOf: (tenant_id: TenantId) => number,
): Turnstile {
  const [requests, reads, hellos] = [config.requests_at_once, config.reads_at_once, config.hellos_at_once].map((places) =>
    fairPlaces<TenantId>({ places, most: mostOf(places) }),
  );
  const placesOf = ({ peer, type }: Request) => {
    // It waits for a worker to look at the file, and takes nothing meanwhile.
    if (isMediaAsk(type)) return undefined;
    if (type === 'hello') return hellos;
    return peer === 'device' && rowOf(type)?.up?.changes === false ? reads : requests;
  };
  return (request, work) => {
    const { tenant_id } = request;
    return placesOf(request)?.run(tenant_id, weightOf(tenant_id), work) ?? work();
  };
}
