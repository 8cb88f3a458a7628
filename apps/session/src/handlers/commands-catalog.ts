import type { TenantId, UpFrame } from '@iris/protocol';
import type { Context, DeviceHandler } from '../context.js';
import { type CatalogEntry, mergeCatalogs, slashed } from '../rules/command.js';
import { laneOf } from '../rules/frames.js';
import { laneIn } from './lookup.js';

/** Served from what the agents said last, also while they are away. */
export const commandsCatalog: DeviceHandler<'commands.catalog'> = async ({ tenant_id, frame }, context) => ({
  kind: 'frame',
  frame: { type: 'commands.catalog', payload: { commands: (await catalogOf(tenant_id, frame, context)).map(commandEntry) } },
});

/** Of the agent that serves the lane; where none is named, of all agents, the default one's first. @throws RequestError `not_found` */
export async function catalogOf(
  tenant_id: TenantId,
  frame: Pick<UpFrame, 'chat_id' | 'thread_id'>,
  context: Pick<Context, 'directory'>,
): Promise<CatalogEntry[]> {
  const { directory } = context;
  if (laneOf(frame) !== undefined) {
    const agent = await directory.agentOf(tenant_id, await laneIn(tenant_id, frame, context));
    return [...((agent?.commands ?? []) as unknown as readonly CatalogEntry[])];
  }
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
