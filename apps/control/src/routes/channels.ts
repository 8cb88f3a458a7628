import { type AgentId, type ChatId, notFound } from '@iris/protocol';
import type { ChannelRow } from '@iris/store';
import { Channel, ChannelChange, ChannelList, ChannelParams } from '../agent-schemas.js';
import type { Api, Routing } from '../control.js';
import { TenantParams } from '../schemas.js';
import { change, look } from './admin-roles.js';

/** `/v1/tenants/{tenant_id}/channels`: which agent serves which. */
export function channelRoutes(api: Api, { store, announcer, tenant, audit }: Routing): void {
  const tags = ['channels'];

  api.get(
    '/v1/tenants/:tenant_id/channels',
    {
      config: look,
      schema: {
        tags,
        summary: 'Channels and threads, and the agents that serve them',
        params: TenantParams,
        response: { 200: ChannelList },
      },
    },
    async (request) => {
      const { tenant_id } = await tenant(request, request.params.tenant_id);
      return { channels: (await store.channels.list(tenant_id)).map(shown) };
    },
  );

  api.patch(
    '/v1/tenants/:tenant_id/channels/:chat_id',
    {
      config: change,
      schema: {
        tags,
        summary: 'Bind a channel, with its threads, to an agent; what runs goes on with the agent that has it',
        params: ChannelParams,
        body: ChannelChange,
        response: { 200: Channel },
      },
    },
    async (request) => {
      const { tenant_id } = await tenant(request, request.params.tenant_id);
      const chat_id = request.params.chat_id as ChatId;
      const agent_id = request.body.agent_id as AgentId | null;
      const row = await store.channels.bind(tenant_id, chat_id, agent_id);
      if (row === undefined) throw notFound(agent_id === null || (await store.agents.get(tenant_id, agent_id)) ? 'channel' : 'agent');
      await audit(request, tenant_id, 'channel.bind', `${chat_id} ${agent_id ?? 'default'}`);
      await announcer.announce({ kind: 'rerouted', tenant_id });
      return shown(row);
    },
  );

  const shown = ({ chat_id, thread_id, kind, name, is_default, agent_id, created_at }: ChannelRow) => ({
    chat_id,
    thread_id,
    kind,
    name,
    is_default,
    agent_id,
    created_at,
  });
}
