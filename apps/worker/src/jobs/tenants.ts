import type { TenantId } from '@iris/protocol';
import type { Store, TenantRow } from '@iris/store';

const page = 200;

/** Every tenant, in the order of ids, a page at a time; with `after` those behind it. */
export async function* allTenants(store: Pick<Store, 'tenants'>, after?: TenantId): AsyncGenerator<TenantRow> {
  for (let at = after; ; ) {
    const tenants = await store.tenants.list({ limit: page, ...(at === undefined ? {} : { after: at }) });
    yield* tenants;
    at = tenants.at(-1)?.tenant_id;
    if (tenants.length < page) return;
  }
}
