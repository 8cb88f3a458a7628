import { heldEvery_ms } from '@iris/bus';
import type { AgentId, ConnectionId, EdgeId, InstallId, TenantId } from '@iris/protocol';
import { type AgentRow, voidFrame } from '@iris/store';

/** One agent's link as this instance knows it. */
export interface AgentLink {
  readonly tenant_id: TenantId;
  readonly agent_id: AgentId;
  readonly install_id: InstallId;
  readonly boot_id: string;
  readonly epoch: number;
  /** Absent: nobody is there now. */
  readonly edge_id: EdgeId | null;
  readonly connection_id: ConnectionId | null;
  /** When something last said that it is there; 0: never. */
  seen_at: number;
  /** When this instance came to know of it. */
  readonly known_at: number;
  /** The highest `seq` handed to the edge in order; undefined when another instance did it. */
  sent_seq: number | undefined;
  /** The order of the newest update of each thing. */
  readonly heard: Map<string, number>;
  /** The highest `seq` of ours that the agent has. */
  acked_seq: number;
  /** The highest `seq` of the agent's that is processed here, and the highest that is stored as such. */
  done_seq: number;
  stored_seq: number;
}

/** Milliseconds without `held` after which a link that is said to be there is not. */
export const linkDead_ms = 4 * heldEvery_ms;
/** As the store has it. */
export const linkOf = (row: AgentRow, known_at: number): AgentLink => ({
  tenant_id: row.tenant_id,
  agent_id: row.agent_id,
  install_id: row.install_id ?? ('' as InstallId),
  boot_id: row.boot_id ?? '',
  epoch: row.epoch,
  edge_id: row.link_edge_id,
  connection_id: row.link_connection_id,
  seen_at: row.link_seen_at ?? 0,
  known_at,
  sent_seq: undefined,
  heard: new Map(),
  acked_seq: 0,
  done_seq: row.in_seq,
  stored_seq: row.in_seq,
});

/** A stored frame as it goes over the link. What was withdrawn keeps its number, and says nothing. */
export const linkText = (frame: Record<string, unknown>, seq?: number): string =>
  JSON.stringify({
    v: 1,
    ...(seq === undefined ? {} : { seq }),
    payload: {},
    ...(frame.type === voidFrame.type ? { type: 'ack' } : frame),
  });
