import type { DataFolder } from '@iris/devstack';
import type { DevTenant } from './dev-json.js';

const file = 'tenants.json';

/**
 * The demo tenants: those that were made before and still stand, and as many new ones as are missing. Their tokens are kept in
 * the data folder, since the gateway keeps hashes alone.
 */
export async function demoTenants(options: {
  folder: DataFolder;
  control_url: string;
  admin_token: string;
  count: number;
}): Promise<readonly [DevTenant, ...DevTenant[]]> {
  const { folder, count } = options;
  const call = (path: string, init: RequestInit = {}) =>
    fetch(`${options.control_url}${path}`, {
      ...init,
      headers: { authorization: `Bearer ${options.admin_token}`, 'content-type': 'application/json' },
    });
  const known = folder.read<DevTenant[]>(file) ?? [];
  const standing: DevTenant[] = [];
  for (const tenant of known.slice(0, count)) {
    const response = await call(`/v1/tenants/${tenant.tenant_id}`);
    await response.arrayBuffer();
    if (response.ok) standing.push(tenant);
    else if (response.status !== 404) throw new Error(`the admin API answers ${response.status}`);
  }
  while (standing.length < count) {
    const name = standing.length === 0 ? 'Demo' : `Demo ${standing.length + 1}`;
    const response = await call('/v1/tenants', { method: 'POST', body: JSON.stringify({ name }) });
    if (!response.ok) throw new Error(`the admin API refused to make a tenant: ${await response.text()}`);
    standing.push((await response.json()) as DevTenant);
  }
  // Those beyond `count` are not forgotten: the next start may want them.
  folder.write(file, [...standing, ...known.slice(count)]);
  return standing as [DevTenant, ...DevTenant[]];
}
