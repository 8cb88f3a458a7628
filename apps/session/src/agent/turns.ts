import { type AgentId, type Lane, laneKey, type MessageId, type TenantId, type TurnId } from '@iris/protocol';
import type { AgentFrameRow, MessageRow, TurnRow } from '@iris/store';
import type { Context } from '../context.js';
import { type Effects, mergeEffects } from '../emission.js';
import { acceptedKey, busyOut, idleOut } from '../rules/frames.js';
import { turnIdOf } from '../rules/ids.js';
import { closeTurn, type Outcome } from './close-turn.js';
import { createNotice } from './notice.js';
import { startingState, type TurnState, turnKey } from './room.js';
import { startFrameOf } from './start-frame.js';
import { stopTurn } from './stop-turn.js';
import { becomes } from './turn-frames.js';

/** The queue of turns of each lane, and what starts and ends them from our side. All of it happens in the tenant's order. */
export interface Turns {
  /** Start what may start in the lane, behind all that was emitted before. `lane` is asked when it is its turn. */
  advance(tenant_id: TenantId, lane: () => Lane | undefined): void;
  /** The same for every lane that waits, and again what was sent but may not have got its frame. */
  advanceAll(tenant_id: TenantId): void;
  /** A turn has ended: lanes that waited only for the tenant's number of turns may start. */
  freed(tenant_id: TenantId): void;
  /** Turns of a process of the agent that is no more: those it had not accepted are sent again, the others are ended as interrupted. */
  recheck(tenant_id: TenantId, agent_id: AgentId): void;
  /** Stop what runs in the lane, or take back what waits first. */
  stop(tenant_id: TenantId, lane: Lane, deadline?: number): Promise<void>;
  /** End a turn from our side, if `still` holds when it is its turn. */
  end(tenant_id: TenantId, turn_id: TurnId, outcome: Outcome, still: (state: TurnState) => Promise<boolean>): Promise<void>;
  /** The agents of the tenant's channels have changed: what waits goes to whose it is now. */
  rerouted(tenant_id: TenantId): void;
  /** A turn whose agent never said that it takes it, and whose lane is another's by now, is queued again for that one. */
  handOver(tenant_id: TenantId, turn_id: TurnId): Promise<void>;
  /** The `turn.start` of a turn that was sent, appended once per attempt; nothing for an agent that was removed. Undefined when its message was deleted. */
  startFrame(row: TurnRow): Promise<AgentFrameRow[] | undefined>;
  /** Whether one more turn may wait in the lane; counts it. The store is asked when the count says no, since it only knows what came. */
  mayWait(tenant_id: TenantId, lane: Lane, max: number): Promise<boolean>;
  /** A message that was stored a moment ago: its turn need not look it up. */
  remember(row: MessageRow): void;
  /**
   * Messages that were deleted start nothing any more: turns that wait for their turn, or for an agent to come, are over. One that
   * the agent may have is its own matter.
   */
  takeBack(tenant_id: TenantId, lane: Lane, message_ids: readonly MessageId[]): Promise<Effects>;
  /** Nothing happens by time any more. */
  close(): void;
}

/** Messages remembered for the turn that they start. */
const rememberedMax = 2_000;
const rememberedLength = 4_096;

export function createTurns(context: () => Context): Turns {
  const remembered = new Map<MessageId, MessageRow>();
  const waiting = new Map<string, number>();
  /** Lanes that were named in this tick. */
  const advancing = new Map<TenantId, (() => Lane | undefined)[]>();
  const notice = createNotice(context, (tenant_id, lane) => turns.advance(tenant_id, () => lane));

  const failed = (what: string, tenant_id: TenantId) => (error: unknown) =>
    context().log.error('session.turns_failed', { what, tenant_id, error });

  const startFrame: Turns['startFrame'] = async (row) => {
    const { store, directory } = context();
    const message = remembered.get(row.message_id) ?? (await store.messages.get(row.tenant_id, row.message_id));
    if (message === undefined) return undefined;
    const channel = await directory.lane(row.tenant_id, row);
    const frame = startFrameOf(row, message, channel);
    return store.agentFrames.append(row.tenant_id, row.agent_id!, [{ frame, key: `start:${row.turn_id}:${row.attempt}` }]);
  };

  /** @param sent turns of earlier tries of the same step: they are `sent` in the store and may lack their frame */
  const startIn = async (tenant_id: TenantId, lane: Lane, sent: Map<TurnId, TurnRow>): Promise<Effects> => {
    const { store, directory, links, rooms } = context();
    const agent = await directory.agentOf(tenant_id, lane);
    if (agent === undefined) return {};
    const link = await links.of(tenant_id, agent.agent_id);
    if (!links.attached(link)) return notice.say(tenant_id, lane, agent, link);
    const max_running = (await directory.tenant(tenant_id))?.quotas.running_turns ?? 0;
    const room = await rooms.of(tenant_id);
    const rows: AgentFrameRow[] = [];
    const open: TurnRow[] = [];
    const begin = async (row: TurnRow): Promise<boolean> => {
      const frames = await startFrame(row);
      remembered.delete(row.message_id);
      if (frames === undefined) {
        // Its message was deleted while it waited.
        await store.turns.end(tenant_id, row.turn_id, { outcome: 'cancelled', at: context().clock.now() });
        return false;
      }
      open.push(row);
      rows.push(...frames);
      return true;
    };
    for (const row of [...sent.values()]) await begin(row);
    for (;;) {
      const row = await store.turns.startNext(tenant_id, lane, { agent_id: agent.agent_id, max_running, boot_id: link.boot_id });
      if (row === undefined) break;
      sent.set(row.turn_id, row);
      if ((await begin(row)) && row.kind === 'chat') break;
    }
    const states = open.map((row): TurnState => room.turns.get(row.turn_id) ?? { ...startingState(row), boot_id: link.boot_id });
    return {
      agent: [{ agent_id: agent.agent_id, rows }],
      values: Object.fromEntries(states.map((state) => [turnKey(state.turn_id), JSON.stringify(state)])),
      know() {
        for (const state of states) room.turns.set(state.turn_id, state);
      },
    };
  };

  /** One step for all lanes that were named in a tick. */
  const startAll = (tenant_id: TenantId) => {
    const asked = advancing.get(tenant_id) ?? [];
    advancing.delete(tenant_id);
    const sent = new Map<string, Map<TurnId, TurnRow>>();
    const run = async (): Promise<Effects> => {
      const lanes = new Map(asked.flatMap((lane) => lane() ?? []).map((lane) => [laneKey(lane), lane]));
      const effects: Effects[] = [];
      for (const [key, lane] of lanes) {
        const rows = sent.get(key) ?? new Map<TurnId, TurnRow>();
        sent.set(key, rows);
        effects.push(await startIn(tenant_id, lane, rows));
      }
      return mergeEffects(effects);
    };
    context().emitter.emit({ kind: 'change', tenant_id, place: 'fresh', run }).catch(failed('advance', tenant_id));
  };

  const stopIn = async (
    tenant_id: TenantId,
    lane: Lane,
    taken: { row: TurnRow | undefined; readonly sent: Map<TurnId, TurnRow> },
  ): Promise<Effects> => {
    const { store, clock, directory, rooms } = context();
    const room = await rooms.of(tenant_id);
    const openNow = () => [...room.turns.values()].filter((state) => !state.ended && laneKey(state) === laneKey(lane));
    const effects: Effects[] = [];
    if (openNow().length === 0) {
      // What was sent a moment ago may not have been started yet: it is what the person means.
      const started = await startIn(tenant_id, lane, taken.sent);
      started.know?.();
      effects.push(started);
    }
    const open = openNow();
    if (open.length === 0) {
      // What waits first is what a person sees as running. It is taken out of the queue, and its end told as that of any other.
      const agent = await directory.agentOf(tenant_id, lane);
      if (agent === undefined) return {};
      taken.row ??= await store.turns.startNext(tenant_id, lane, { agent_id: agent.agent_id, max_running: Number.MAX_SAFE_INTEGER });
      if (taken.row === undefined) return mergeEffects(effects);
      const state = startingState(taken.row);
      await store.turns.end(tenant_id, state.turn_id, { outcome: 'cancelled', at: clock.now() });
      return mergeEffects([...effects, { frames: [busyOut(state, 'processing', acceptedKey(state)), idleOut(state)] }]);
    }
    for (const state of open) effects.push(...(await stopTurn(tenant_id, room, state, context())));
    return mergeEffects(effects);
  };

  const turns: Turns = {
    startFrame,
    async mayWait(tenant_id, lane, max) {
      const key = `${tenant_id}\n${laneKey(lane)}`;
      let count = waiting.get(key);
      if (count === undefined || count >= max) count = await context().store.turns.waiting(tenant_id, lane);
      if (waiting.size >= rememberedMax) waiting.clear();
      waiting.set(key, count + 1);
      return count < max;
    },
    remember(row) {
      if (row.text.length > rememberedLength) return;
      if (remembered.size >= rememberedMax) remembered.clear();
      remembered.set(row.message_id, row);
    },
    async takeBack(tenant_id, lane, message_ids) {
      const { store, clock, rooms, links } = context();
      for (const id of message_ids) remembered.delete(id);
      if ((await store.turns.waiting(tenant_id, lane)) > 0)
        for (const id of message_ids) {
          const row = await store.turns.get(tenant_id, turnIdOf(id));
          if (row?.state === 'queued') await store.turns.end(tenant_id, row.turn_id, { outcome: 'cancelled', at: clock.now() });
        }
      const gone = new Set(message_ids);
      const room = await rooms.of(tenant_id);
      const effects: Effects[] = [];
      for (const state of room.turns.values()) {
        if (!gone.has(state.message_id) || state.accepted || state.ended) continue;
        if (links.attached(await links.of(tenant_id, state.agent_id))) continue;
        await store.agentFrames.withdraw(tenant_id, state.agent_id, state.turn_id);
        effects.push(await closeTurn(context(), tenant_id, room, state, 'cancelled', { own: false }));
      }
      return mergeEffects(effects);
    },
    advance(tenant_id, lane) {
      const lanes = advancing.get(tenant_id);
      if (lanes !== undefined) return void lanes.push(lane);
      advancing.set(tenant_id, [lane]);
      // At the end of the tick: it goes behind all that is emitted in it, and those stay one batch.
      context().clock.soon(() => startAll(tenant_id));
    },
    advanceAll(tenant_id) {
      const run = async (): Promise<Effects> => {
        const { store, links } = context();
        const byAgent = new Map<AgentId, AgentFrameRow[]>();
        for (const row of await store.turns.open(tenant_id)) {
          if (row.state !== 'sent' || !links.attached(await links.of(tenant_id, row.agent_id!))) continue;
          byAgent.set(row.agent_id!, [...(byAgent.get(row.agent_id!) ?? []), ...((await startFrame(row)) ?? [])]);
        }
        for (const lane of await store.turns.waitingLanes(tenant_id)) turns.advance(tenant_id, () => lane);
        return { agent: [...byAgent].map(([agent_id, rows]) => ({ agent_id, rows })) };
      };
      context().emitter.emit({ kind: 'change', tenant_id, place: 'fresh', run }).catch(failed('advance_all', tenant_id));
    },
    rerouted(tenant_id) {
      for (const key of waiting.keys()) if (key.startsWith(`${tenant_id}\n`)) waiting.delete(key);
      turns.advanceAll(tenant_id);
    },
    async handOver(tenant_id, turn_id) {
      let lane: Lane | undefined;
      const run = async (): Promise<Effects> => {
        const { store, rooms, directory } = context();
        const room = await rooms.of(tenant_id);
        const state = room.turns.get(turn_id);
        if (state === undefined || state.accepted || state.ended) return {};
        const agent = await directory.agentOf(tenant_id, state);
        if (agent === undefined || agent.agent_id === state.agent_id) return {};
        const again = (await store.turns.requeue(tenant_id, turn_id)) ?? (await store.turns.get(tenant_id, turn_id));
        if (again?.state !== 'queued') return {};
        await store.agentFrames.withdraw(tenant_id, state.agent_id, turn_id);
        lane = state;
        return { values: { [turnKey(turn_id)]: null }, know: () => void room.turns.delete(turn_id) };
      };
      await context().emitter.emit({ kind: 'change', tenant_id, place: 'fresh', run });
      const at = lane;
      if (at !== undefined) turns.advance(tenant_id, () => at);
    },
    freed(tenant_id) {
      void (async () => {
        const { directory, rooms } = context();
        const max = (await directory.tenant(tenant_id))?.quotas.running_turns ?? 0;
        if ((rooms.peek(tenant_id)?.turns.size ?? 0) >= max - 1) turns.advanceAll(tenant_id);
      })().catch(failed('freed', tenant_id));
    },
    recheck(tenant_id, agent_id) {
      let ended = false;
      const again = (in_ms: number) => void context().clock.after(in_ms, () => turns.recheck(tenant_id, agent_id));
      const run = async (): Promise<Effects> => {
        const { links, rooms, store } = context();
        const link = await links.current(tenant_id, agent_id);
        if (!links.attached(link)) return {};
        const { clock, config } = context();
        const rest_ms = link.known_at + config.resume_ms - clock.now();
        // Asked for an older link: this one has yet to say what its process has kept.
        if (rest_ms > 0) {
          again(rest_ms);
          return {};
        }
        const room = await rooms.of(tenant_id);
        const effects: Effects[] = [];
        for (const state of room.turns.values()) {
          if (state.agent_id !== agent_id || state.ended || state.boot_id === link.boot_id) continue;
          if (state.accepted) {
            ended = true;
            effects.push(await closeTurn(context(), tenant_id, room, state, 'interrupted', { own: false }));
          } else {
            const rows = await offerAgain(state, { tenant_id, agent_id, boot_id: link.boot_id }, { store, turns });
            if (rows === undefined) continue;
            if (rows === 'deleted') {
              ended = true;
              effects.push(await closeTurn(context(), tenant_id, room, state, 'cancelled', { own: false }));
              continue;
            }
            effects.push({ ...becomes(room, { ...state, boot_id: link.boot_id }), agent: [{ agent_id, rows }] });
          }
        }
        return mergeEffects(effects);
      };
      context()
        .emitter.emit({ kind: 'change', tenant_id, place: 'fresh', run })
        .then(() => ended && turns.advanceAll(tenant_id))
        .catch(failed('recheck', tenant_id));
    },
    async stop(tenant_id, lane, deadline) {
      const taken = { row: undefined, sent: new Map<TurnId, TurnRow>() };
      const run = () => stopIn(tenant_id, lane, taken);
      await context().emitter.emit({ kind: 'change', tenant_id, place: 'fresh', run, ...(deadline === undefined ? {} : { deadline }) });
      turns.advance(tenant_id, () => lane);
    },
    async end(tenant_id, turn_id, outcome, still) {
      let lane: Lane | undefined;
      const run = async (): Promise<Effects> => {
        const room = await context().rooms.of(tenant_id);
        const state = room.turns.get(turn_id);
        if (state === undefined || !(await still(state))) return {};
        lane = state;
        return closeTurn(context(), tenant_id, room, state, outcome, { own: false });
      };
      await context().emitter.emit({ kind: 'change', tenant_id, run });
      if (lane !== undefined) turns.advanceAll(tenant_id);
    },
    close: () => notice.stop(),
  };
  return turns;
}

/**
 * One attempt further, in place of the `turn.start` that may still wait; undefined when the turn was accepted or ended meanwhile. `deleted`: there is
 * nothing to offer any more, and who calls ends the turn, or its lane would wait for it for ever.
 */
export async function offerAgain(
  state: TurnState,
  { tenant_id, agent_id, boot_id }: { tenant_id: TenantId; agent_id: AgentId; boot_id: string | null },
  { store, turns }: { store: Context['store']; turns: Turns },
): Promise<AgentFrameRow[] | 'deleted' | undefined> {
  const again = await store.turns.retry(tenant_id, state.turn_id, boot_id);
  if (again === undefined) return undefined;
  await store.agentFrames.withdraw(tenant_id, agent_id, state.turn_id);
  return (await turns.startFrame(again)) ?? 'deleted';
}
