import type { TenantId } from '@iris/protocol';
import type { Context, DeviceHandler } from '../context.js';
import { type CatalogEntry, mergeCatalogs, slashed } from '../rules/command.js';

/** Served from what the agents said last, also while they are away. */
export const commandsCatalog: DeviceHandler<'commands.catalog'> = async ({ tenant_id }, context) => ({
  kind: 'frame',
  frame: { type: 'commands.catalog', payload: { commands: (await catalogOf(tenant_id, context)).map(commandEntry) } },
});

export async function catalogOf(tenant_id: TenantId, { directory }: Pick<Context, 'directory'>): Promise<CatalogEntry[]> {
  const agents = [...(await directory.agents(tenant_id))].sort((a, b) => Number(b.is_default) - Number(a.is_default));
  return mergeCatalogs(agents.map(({ commands }) => commands as unknown as readonly CatalogEntry[]));
}

export const commandEntry = ({ name, description, args_hint = '', category = '', aliases = [] }: CatalogEntry) => ({
  name: slashed(name),
  description,
  args_hint,
  category,
  aliases: aliases.map(slashed),
});
