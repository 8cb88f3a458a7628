import { ownerOf, type SessionWatch } from '@iris/bus';
import type { SessionId, TenantId } from '@iris/protocol';
import type { PickerRow } from '@iris/store';
import type { Context } from '../context.js';
import { pickerClosed, pickerClosedDown } from './close-turn.js';
import type { Heard, TurnState } from './room.js';
import { isForgotten, ranOut, stopForgotten } from './unanswered.js';

/** A timer this late means that the process stood still: what it did not hear meanwhile was not silence. */
const frozen_ms = 4_000;
const expiredMax = 100;

export interface Sweep {
  /** An agent's link was heard of; the first time, its tenant's waiting turns are looked after. */
  heard(tenant_id: TenantId): void;
  stop(): void;
}

/**
 * Nothing stays stuck: turns whose agent has gone for good, stops that nobody answered, pickers past their time, and what an instance left undone
 * when it died. Each instance looks after the tenants that it serves.
 */
export function startSweep(deps: { context: Context; session_id: SessionId; watch: SessionWatch; busConnected: () => boolean }): Sweep {
  const { context, watch } = deps;
  const { clock, config, log, store, rooms, links, turns, emitter, directory, silence } = context;
  /** Since when silence counts: nothing was missed after. */
  let listening = clock.now();
  let last = clock.now();
  let scanned = 0;
  let busy = false;
  const adopted = new Map<TenantId, number>();

  const owns = (tenant_id: TenantId) => ownerOf(tenant_id, watch.live) === deps.session_id;

  /** Open turns of every tenant served here, also of those that nobody has asked for since their instance died. */
  const scan = async () => {
    for (const tenant_id of await store.turns.openTenants()) {
      if (!owns(tenant_id) || rooms.peek(tenant_id) !== undefined) continue;
      await rooms.of(tenant_id);
      adopted.set(tenant_id, clock.now());
    }
    for (const [tenant_id, at] of adopted)
      if (rooms.peek(tenant_id) === undefined && at < clock.now() - config.idle_ms) adopted.delete(tenant_id);
  };

  function* runningHere(): Generator<readonly [TenantId, TurnState, Heard | undefined]> {
    for (const [tenant_id, { turns: running, heard }] of rooms.all())
      if (running.size > 0 && owns(tenant_id)) for (const state of running.values()) yield [tenant_id, state, heard.get(state.turn_id)];
  }

  const lookAt = async (tenant_id: TenantId): Promise<void> => {
    const room = rooms.peek(tenant_id);
    const since = Math.max(listening, adopted.get(tenant_id) ?? 0);
    for (const state of room?.turns.values() ?? []) {
      if (state.ended) continue;
      const now = clock.now();
      if (state.stop_at !== null && now - state.stop_at >= config.stop_deadline_ms) {
        await turns.end(tenant_id, state.turn_id, 'cancelled', async ({ ended }) => !ended);
        continue;
      }
      if (now - since < config.settle_ms) continue;
      const silent = async (): Promise<boolean> => {
        const link = await links.current(tenant_id, state.agent_id);
        return link === undefined || clock.now() - link.seen_at >= config.grace_ms;
      };
      if (!state.accepted) {
        // It waits for its agent to come back, unless its lane has another one by now.
        const agent = await directory.agentOf(tenant_id, state);
        if (agent !== undefined && agent.agent_id !== state.agent_id && (await silent())) await turns.handOver(tenant_id, state.turn_id);
        continue;
      }
      if (room !== undefined && isForgotten(state, room, since, context)) await stopForgotten(tenant_id, state.turn_id, since, context);
      if (await silent()) await turns.end(tenant_id, state.turn_id, 'interrupted', async ({ ended }) => !ended && (await silent()));
    }
  };

  const expire = async (row: PickerRow): Promise<void> => {
    const { tenant_id, picker_id, agent_id } = row;
    await emitter.emit({
      kind: 'change',
      tenant_id,
      async run() {
        const standing = await store.pickers.get(tenant_id, picker_id);
        if (standing?.state !== 'open') return {};
        const rows =
          agent_id === null
            ? []
            : await store.agentFrames.append(tenant_id, agent_id, [
                { frame: pickerClosedDown(row, 'expired'), key: `closed:${picker_id}` },
              ]);
        const waits = row.turn_id === null ? {} : ranOut(row, await rooms.of(tenant_id), context);
        return {
          ...waits,
          frames: [pickerClosed(row, { expired: true })],
          agent: agent_id === null ? [] : [{ agent_id, rows }],
          know() {
            rooms.peek(tenant_id)?.pickers.delete(picker_id);
            waits.know?.();
          },
          async after() {
            await store.pickers.close(tenant_id, picker_id, { state: 'closed', value: null, answered_by: 'expired' });
          },
        };
      },
    });
  };

  const sweep = async (): Promise<void> => {
    links.tick();
    if (clock.now() - scanned >= config.scan_ms) {
      scanned = clock.now();
      await scan();
    }
    silence.look(runningHere(), listening);
    /** What cannot be done for one tenant now holds up no other: it is let be until the next time. */
    const failed = new Set<TenantId>();
    const apart = async (tenant_id: TenantId, run: () => Promise<void>): Promise<void> => {
      if (failed.has(tenant_id) || !owns(tenant_id)) return;
      await run().catch((error: unknown) => {
        failed.add(tenant_id);
        log.warn('session.sweep_failed', { tenant_id, error });
      });
    };
    for (const [tenant_id, room] of rooms.all()) if (room.turns.size > 0) await apart(tenant_id, () => lookAt(tenant_id));
    // Others' too are in it, which they close: behind a page of those may be some of ours.
    for (let after: PickerRow | undefined; ; ) {
      const rows = await store.pickers.expired(clock.now(), { limit: expiredMax, ...(after === undefined ? {} : { after }) });
      for (const row of rows) await apart(row.tenant_id, () => expire(row));
      if (rows.length < expiredMax) return;
      after = rows.at(-1);
    }
  };
  const timer = clock.every(config.sweep_ms, () => {
    const now = clock.now();
    if (now - last > frozen_ms + config.sweep_ms || !deps.busConnected()) listening = now;
    last = now;
    rooms.tidy();
    if (busy) return;
    busy = true;
    sweep()
      .catch((error: unknown) => log.warn('session.sweep_failed', { error }))
      .finally(() => {
        busy = false;
      });
  });
  const stopWatching = watch.onChange(() => {
    // Tenants come and go with instances: what is here of those that went is stale when they come back.
    scanned = 0;
    for (const [tenant_id] of rooms.all()) if (!owns(tenant_id)) rooms.forget(tenant_id);
    adopted.clear();
  });

  return {
    heard(tenant_id) {
      if (adopted.has(tenant_id) && adopted.get(tenant_id)! > clock.now() - config.idle_ms) return;
      adopted.set(tenant_id, clock.now());
      turns.advanceAll(tenant_id);
      clock.after(config.resume_ms, () => {
        const agents = new Set([...(rooms.peek(tenant_id)?.turns.values() ?? [])].map(({ agent_id }) => agent_id));
        for (const agent_id of agents) turns.recheck(tenant_id, agent_id);
      });
    },
    stop() {
      timer.cancel();
      stopWatching();
    },
  };
}
