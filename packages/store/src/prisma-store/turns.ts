import type { Lane, TurnId } from '@iris/protocol';
import type { TurnRow } from '../rows.js';
import type { Turns } from '../store.js';
import { columns } from './columns.js';
import { sqlState, uniqueViolation } from './connections.js';
import type { Database } from './database.js';
import { maybeRowOf, rowOf, threadKey } from './mapping.js';

const all = columns.turn.list;
const inLane = 'tenant_id = $1 AND chat_id = $2 AND thread_id = $3';

const queue = `
INSERT INTO turn (tenant_id, chat_id, thread_id, turn_id, agent_id, message_id, kind, device_id, connection_id, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (tenant_id, turn_id) DO NOTHING RETURNING ${all}`;

/** The tenant's starts happen one after another, so that their number is exact; messages meanwhile go in. */
const lock = 'SELECT 1 FROM tenant WHERE tenant_id = $1 FOR NO KEY UPDATE';
const next = `
UPDATE turn SET state = 'sent', agent_id = $4, boot_id = $6 WHERE tenant_id = $1 AND state = 'queued' AND turn_id = (
  SELECT turn_id FROM turn WHERE ${inLane} AND state = 'queued' AND (kind = 'command' OR (
    NOT EXISTS (SELECT 1 FROM turn WHERE ${inLane} AND kind = 'chat' AND state IN ('sent', 'running'))
    AND (SELECT count(*) FROM turn WHERE tenant_id = $1 AND kind = 'chat' AND state IN ('sent', 'running')) < $5
  )) ORDER BY kind <> 'command', position LIMIT 1
) RETURNING ${all}`;

const accept = `
UPDATE turn SET state = 'running', boot_id = $3, accepted_at = $4 WHERE tenant_id = $1 AND turn_id = $2 AND state = 'sent' RETURNING 1`;
const retry = `
UPDATE turn SET attempt = attempt + 1, boot_id = $3 WHERE tenant_id = $1 AND turn_id = $2 AND state = 'sent' RETURNING ${all}`;
const requeue = `
UPDATE turn SET state = 'queued', attempt = attempt + 1, agent_id = NULL, boot_id = NULL
WHERE tenant_id = $1 AND turn_id = $2 AND state = 'sent' RETURNING ${all}`;
const requestStop = `UPDATE turn SET stop_requested = true WHERE tenant_id = $1 AND turn_id = $2 AND state <> 'ended'`;
const end = `
UPDATE turn SET state = 'ended', outcome = $3, ended_at = $4 WHERE tenant_id = $1 AND turn_id = $2 AND state <> 'ended' RETURNING ${all}`;
const open = `SELECT ${all} FROM turn WHERE tenant_id = $1 AND state IN ('sent', 'running') ORDER BY position`;
/** From the index of the open ones alone. */
const openTenants = `SELECT DISTINCT tenant_id FROM turn WHERE state IN ('sent', 'running')`;
const waitingLanes = `
SELECT chat_id, thread_id FROM turn WHERE tenant_id = $1 AND state = 'queued' GROUP BY chat_id, thread_id ORDER BY min(position)`;
const waiting = `SELECT count(*) AS turns FROM turn WHERE ${inLane} AND state = 'queued'`;

export function prismaTurns({ prisma, sql }: Database): Turns {
  const one = async (text: string, values: readonly unknown[]) => maybeRowOf<TurnRow>((await sql.rows(text, values))[0]);
  const get = async (tenant_id: string, turn_id: TurnId) =>
    maybeRowOf<TurnRow>(await prisma.turn.findUnique({ where: { tenant_id_turn_id: { tenant_id, turn_id } } }));
  return {
    async queue(tenant_id, lane, turn) {
      const { turn_id, agent_id, message_id, kind, device_id, connection_id, created_at } = turn;
      const at = [tenant_id, lane.chat_id, threadKey(lane)];
      const queued = await one(queue, [...at, turn_id, agent_id, message_id, kind, device_id, connection_id, created_at]);
      const row = queued ?? (await get(tenant_id, turn_id));
      if (!row) throw new Error(`turn ${turn_id} went away with its lane`);
      return row;
    },
    get,
    async startNext(tenant_id, lane, { agent_id, max_running, boot_id }) {
      try {
        return await sql.transaction(async (tx) => {
          await tx.rows(lock, [tenant_id]);
          const values = [tenant_id, lane.chat_id, threadKey(lane), agent_id, max_running, boot_id ?? null];
          return maybeRowOf<TurnRow>((await tx.rows(next, values))[0]);
        });
      } catch (error) {
        // The index saw another chat turn of the lane become active: someone else won.
        if (sqlState(error) === uniqueViolation) return undefined;
        throw error;
      }
    },
    async accept(tenant_id, turn_id, { boot_id, at }) {
      if ((await sql.rows(accept, [tenant_id, turn_id, boot_id, at])).length > 0) return 'accepted';
      const state = (await get(tenant_id, turn_id))?.state;
      return state === 'ended' ? 'ended' : state === 'running' ? 'already' : undefined;
    },
    retry: (tenant_id, turn_id, boot_id) => one(retry, [tenant_id, turn_id, boot_id]),
    requeue: (tenant_id, turn_id) => one(requeue, [tenant_id, turn_id]),
    async requestStop(tenant_id, turn_id) {
      await sql.rows(requestStop, [tenant_id, turn_id]);
    },
    end: (tenant_id, turn_id, { outcome, at }) => one(end, [tenant_id, turn_id, outcome, at]),
    open: async (tenant_id) => (await sql.rows(open, [tenant_id])).map(rowOf<TurnRow>),
    openTenants: async () => (await sql.everywhere.rows<Pick<TurnRow, 'tenant_id'>>(openTenants)).map(({ tenant_id }) => tenant_id),
    waitingLanes: async (tenant_id) => (await sql.rows<Lane>(waitingLanes, [tenant_id])).map(rowOf<Lane>),
    waiting: async (tenant_id, lane) =>
      (await sql.rows<{ turns: number }>(waiting, [tenant_id, lane.chat_id, threadKey(lane)]))[0]?.turns ?? 0,
  };
}
