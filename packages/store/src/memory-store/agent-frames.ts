import type { AgentId, TenantId } from '@iris/protocol';
import { frameKeysKept_ms, voidFrame } from '../agent-frame.js';
import { copy } from '../copy.js';
import type { AgentFrameRow } from '../rows.js';
import type { AgentFrames } from '../store.js';
import type { AgentState, MemoryState } from './state.js';

export function memoryAgentFrames(state: MemoryState): AgentFrames {
  const find = (tenant_id: TenantId, agent_id: AgentId): AgentState | undefined => state.tenants.get(tenant_id)?.agents.get(agent_id);
  return {
    async append(tenant_id, agent_id, frames) {
      const agent = find(tenant_id, agent_id);
      if (!agent) return [];
      return frames.map(({ frame, key = null }) => {
        if (key !== null && agent.keys.has(key)) {
          const first = agent.frames.find((kept) => kept.key === key);
          return first ? copy(first.row) : { tenant_id, agent_id, seq: 0, frame: copy(frame) };
        }
        const row: AgentFrameRow = { tenant_id, agent_id, seq: agent.row.out_seq + 1, frame: copy(frame) };
        agent.row = { ...agent.row, out_seq: row.seq };
        agent.frames.push({ row, key });
        if (key !== null) agent.keys.set(key, state.clock.now());
        return copy(row);
      });
    },
    after: async (tenant_id, agent_id, seq) =>
      (find(tenant_id, agent_id)?.frames ?? []).filter(({ row }) => row.seq > seq).map(({ row }) => copy(row)),
    async ack(tenant_id, agent_id, seq) {
      const agent = find(tenant_id, agent_id);
      if (!agent) return;
      agent.frames = agent.frames.filter(({ row }) => row.seq > seq);
      dropKeys(agent, state.clock.now() - frameKeysKept_ms);
    },
    async withdraw(tenant_id, agent_id, turn_id) {
      const agent = find(tenant_id, agent_id);
      if (!agent) return;
      agent.frames = agent.frames.map(({ row, key }) => {
        const starts = row.frame.type === 'turn.start' && row.frame.turn_id === turn_id;
        return { row: starts ? { ...row, frame: voidFrame } : row, key };
      });
    },
  };
}

/** Keys of frames that are acked, noted before then; no more than `limit`. Returns how many went. */
export function dropKeys(agent: AgentState, before: number, limit = Number.POSITIVE_INFINITY): number {
  const waiting = new Set(agent.frames.map(({ key }) => key));
  let gone = 0;
  for (const [key, at] of agent.keys) if (at < before && !waiting.has(key) && gone++ < limit) agent.keys.delete(key);
  return Math.min(gone, limit);
}
