import type { TenantId } from '@iris/protocol';

/**
 * What tenants have of one worker's places for one kind of job: nobody has more than so many, so that no place is waited for until the long work of
 * one tenant ends. A job that may not begin is put aside, and called back as soon as it may.
 */
export interface TenantPlaces {
  /** False when the tenant has all that it may. */
  enter(tenant_id: TenantId, job_id: string): boolean;
  leave(tenant_id: TenantId): void;
  /** It waits elsewhere now. */
  aside(tenant_id: TenantId, job_id: string): void;
  /** How many of the tenant's wait so. */
  waiting(tenant_id: TenantId): number;
}

/** @param callBack false when it is not there any more: another worker took it, or its time had come */
export function tenantPlaces(most: number, callBack: (job_id: string) => Promise<boolean>): TenantPlaces {
  const taken = new Map<TenantId, number>();
  const waiting = new Map<TenantId, Set<string>>();
  const drop = (tenant_id: TenantId, job_id: string) => {
    const jobs = waiting.get(tenant_id);
    if (jobs?.delete(job_id) === true && jobs.size === 0) waiting.delete(tenant_id);
  };
  const next = async (tenant_id: TenantId): Promise<void> => {
    while ((taken.get(tenant_id) ?? 0) < most) {
      const [job_id] = waiting.get(tenant_id) ?? [];
      if (job_id === undefined) return;
      drop(tenant_id, job_id);
      if (await callBack(job_id)) return;
    }
  };
  return {
    enter(tenant_id, job_id) {
      const has = taken.get(tenant_id) ?? 0;
      if (has >= most) return false;
      taken.set(tenant_id, has + 1);
      drop(tenant_id, job_id);
      return true;
    },
    leave(tenant_id) {
      const has = taken.get(tenant_id)! - 1;
      if (has === 0) taken.delete(tenant_id);
      else taken.set(tenant_id, has);
      void next(tenant_id);
    },
    aside(tenant_id, job_id) {
      const jobs = waiting.get(tenant_id) ?? new Set();
      waiting.set(tenant_id, jobs.add(job_id));
      // A place may have come free while it was being put aside.
      void next(tenant_id);
    },
    waiting: (tenant_id) => waiting.get(tenant_id)?.size ?? 0,
  };
}
