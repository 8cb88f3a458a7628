import type { Lane, TurnId } from '@iris/protocol';
import { laneKey } from '@iris/protocol';
import { copy } from '../copy.js';
import type { TurnRow } from '../rows.js';
import type { NewTurn, Turns } from '../store.js';
import { hasLane, laneOf, type MemoryState, sameLane, type TenantState } from './state.js';

/** The turn stands already, or is queued now at the end of its lane. */
export function newTurn(state: MemoryState, tenant: TenantState, lane: Lane, turn: NewTurn): TurnRow {
  const old = tenant.turns.get(turn.turn_id);
  if (old) return old;
  const row: TurnRow = {
    ...laneOf(lane),
    tenant_id: tenant.row.tenant_id,
    turn_id: turn.turn_id,
    agent_id: turn.agent_id,
    message_id: turn.message_id,
    kind: turn.kind,
    device_id: turn.device_id,
    connection_id: turn.connection_id,
    created_at: turn.created_at,
    state: 'queued',
    outcome: null,
    attempt: 1,
    boot_id: null,
    stop_requested: false,
    position: state.nextSeq(),
    accepted_at: null,
    ended_at: null,
  };
  tenant.turns.set(row.turn_id, row);
  tenant.openTurns.add(row.turn_id);
  return row;
}

const active = (turn: TurnRow): boolean => turn.state === 'sent' || turn.state === 'running';
const byPosition = (a: TurnRow, b: TurnRow): number => a.position - b.position;

/** Turns that have not ended, in order. */
const unended = (tenant: TenantState | undefined): TurnRow[] =>
  [...(tenant?.openTurns ?? [])].flatMap((id) => tenant?.turns.get(id) ?? []).sort(byPosition);

export function memoryTurns(state: MemoryState): Turns {
  /** Changes the turn if `when` holds; the changed row, copied. */
  function change(
    tenant: TenantState | undefined,
    turn_id: TurnId,
    when: (turn: TurnRow) => boolean,
    fields: (turn: TurnRow) => Partial<TurnRow>,
  ) {
    const turn = tenant?.turns.get(turn_id);
    if (!tenant || !turn || !when(turn)) return undefined;
    const changed: TurnRow = { ...turn, ...fields(turn) };
    tenant.turns.set(turn_id, changed);
    if (changed.state === 'ended') tenant.openTurns.delete(turn_id);
    return copy(changed);
  }
  return {
    async queue(tenant_id, lane, turn) {
      const tenant = state.tenants.get(tenant_id);
      if (!hasLane(tenant, lane)) throw new Error(`no lane ${laneKey(lane)}`);
      return copy(newTurn(state, tenant, lane, turn));
    },
    get: async (tenant_id, turn_id) => copy(state.tenants.get(tenant_id)?.turns.get(turn_id)),
    async startNext(tenant_id, lane, { agent_id, max_running, boot_id }) {
      const tenant = state.tenants.get(tenant_id);
      const turns = unended(tenant);
      const queued = turns.filter((turn) => sameLane(turn, lane) && turn.state === 'queued');
      const chats = turns.filter((turn) => turn.kind === 'chat' && active(turn));
      const chatMayStart = chats.length < max_running && !chats.some((turn) => sameLane(turn, lane));
      const next = queued.find((turn) => turn.kind === 'command') ?? (chatMayStart ? queued[0] : undefined);
      return (
        next &&
        change(
          tenant,
          next.turn_id,
          () => true,
          () => ({ state: 'sent', agent_id, boot_id: boot_id ?? null }),
        )
      );
    },
    async accept(tenant_id, turn_id, { boot_id, at }) {
      const tenant = state.tenants.get(tenant_id);
      const turn = tenant?.turns.get(turn_id);
      if (!turn || turn.state === 'queued') return undefined;
      if (turn.state === 'ended') return 'ended';
      if (turn.state === 'running') return 'already';
      change(
        tenant,
        turn_id,
        () => true,
        () => ({ state: 'running', boot_id, accepted_at: at }),
      );
      return 'accepted';
    },
    retry: async (tenant_id, turn_id, boot_id) =>
      change(
        state.tenants.get(tenant_id),
        turn_id,
        (turn) => turn.state === 'sent',
        (turn) => ({ attempt: turn.attempt + 1, boot_id }),
      ),
    requeue: async (tenant_id, turn_id) =>
      change(
        state.tenants.get(tenant_id),
        turn_id,
        (turn) => turn.state === 'sent',
        (turn) => ({ state: 'queued', attempt: turn.attempt + 1, agent_id: null, boot_id: null }),
      ),
    async requestStop(tenant_id, turn_id) {
      change(
        state.tenants.get(tenant_id),
        turn_id,
        (turn) => turn.state !== 'ended',
        () => ({ stop_requested: true }),
      );
    },
    end: async (tenant_id, turn_id, { outcome, at }) =>
      change(
        state.tenants.get(tenant_id),
        turn_id,
        (turn) => turn.state !== 'ended',
        () => ({ state: 'ended', outcome, ended_at: at }),
      ),
    open: async (tenant_id) => unended(state.tenants.get(tenant_id)).filter(active).map(copy),
    openTenants: async () => [...state.tenants].flatMap(([tenant_id, tenant]) => (unended(tenant).some(active) ? [tenant_id] : [])),
    async waitingLanes(tenant_id) {
      const queued = unended(state.tenants.get(tenant_id)).filter((turn) => turn.state === 'queued');
      return [...new Map(queued.map((turn) => [laneKey(turn), laneOf(turn)])).values()];
    },
    waiting: async (tenant_id, lane) =>
      unended(state.tenants.get(tenant_id)).filter((turn) => turn.state === 'queued' && sameLane(turn, lane)).length,
  };
}
