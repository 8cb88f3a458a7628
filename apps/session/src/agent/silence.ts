import type { AgentId, TenantId, TurnId } from '@iris/protocol';
import type { Clock, Log, Meter } from '@iris/runtime';
import { type Heard, heardKey, type TurnState } from './room.js';

/** When each running turn was last heard of. Nothing is done about one that is silent: an operator is told, once per silence. */
export interface Silence {
  /** Its agent said something about the turn: not what each new link begins with, however the turn stands. */
  heard(agent_id: AgentId, turn_id: TurnId | undefined): void;
  /** Whether it has said anything of the turn after this moment, or may have: what was said to another instance is known here only about. */
  saidSince(agent_id: AgentId, turn_id: TurnId, at: number): boolean;
  /**
   * Every second, all that run here, with what the instance before wrote down of each. What is not among them any more is forgotten.
   * @param listening since when nothing was missed: who stood still, or was cut off, first listens again before it says that nobody speaks
   */
  look(running: Iterable<readonly [TenantId, TurnState, Heard | undefined]>, listening: number): void;
  stop(): void;
}

interface Entry {
  at: number;
  told: boolean;
  /** Whether a person is waited for: then it is not the agent's silence. */
  waits: boolean;
  /** Since when it is this instance's. */
  readonly since: number;
  /** What the next instance would read, and when it was written. */
  noted: Heard | undefined;
  noted_at: number;
}

/** How much of what was heard the next instance may not know: for each minute of a long turn one small value is written. */
const note_ms = 60_000;

export function createSilence(deps: {
  clock: Clock;
  log: Log;
  meter: Meter;
  silence_ms: number;
  /** How long a turn that came from another instance is listened to before it counts as silent. */
  settle_ms: number;
  put: (tenant_id: TenantId, values: Record<string, string>) => void;
}): Silence {
  const { clock, log } = deps;
  let entries = new Map<string, Entry>();
  const keyOf = (agent_id: AgentId, turn_id: TurnId) => `${agent_id}\n${turn_id}`;
  const told = deps.meter.counter('iris_session_turns_silent_total');
  const forget = deps.meter.gauge(
    'iris_session_turns_silent',
    () => [...entries.values()].filter((entry) => entry.told && !entry.waits).length,
  );
  /** That it was told at once, so that the next instance does not tell it again; when it was heard, now and then. */
  const note = (tenant_id: TenantId, turn_id: TurnId, entry: Entry, now: number) => {
    const { at, told, noted } = entry;
    if (noted?.told === told && noted.at === at) return;
    if (told === (noted?.told ?? false) && now - entry.noted_at < note_ms) return;
    entry.noted = { at, told };
    entry.noted_at = now;
    deps.put(tenant_id, { [heardKey(turn_id)]: JSON.stringify(entry.noted) });
  };
  const entryOf = (now: number, before: Heard | undefined): Entry => ({
    at: Math.min(before?.at ?? now, now),
    told: before?.told ?? false,
    waits: false,
    since: now,
    noted: before,
    noted_at: now,
  });
  return {
    heard(agent_id, turn_id) {
      if (turn_id === undefined) return;
      const key = keyOf(agent_id, turn_id);
      const entry = entries.get(key);
      // What is no running turn goes with the next look.
      if (entry === undefined) return void entries.set(key, entryOf(clock.now(), undefined));
      entry.at = clock.now();
      if (entry.told) log.info('session.turn_heard_again', { agent_id, turn_id });
      entry.told = false;
    },
    saidSince(agent_id, turn_id, at) {
      const entry = entries.get(keyOf(agent_id, turn_id));
      return entry === undefined || entry.at > at || entry.since > at;
    },
    look(running, listening) {
      const now = clock.now();
      const next = new Map<string, Entry>();
      for (const [tenant_id, { turn_id, agent_id, chat_id, thread_id, accepted, ended, reason }, before] of running) {
        if (!accepted || ended) continue;
        const key = keyOf(agent_id, turn_id);
        const entry = entries.get(key) ?? entryOf(now, before);
        entry.noted ??= before;
        next.set(key, entry);
        entry.waits = reason === 'waiting_input';
        const silent_ms = now - entry.at;
        if (!entry.told && silent_ms >= deps.silence_ms && now - Math.max(entry.since, listening) >= deps.settle_ms) {
          entry.told = true;
          told.add(1, { reason: reason ?? 'none' });
          log.warn('session.turn_silent', { tenant_id, agent_id, turn_id, chat_id, thread_id, reason, silent_ms });
        }
        note(tenant_id, turn_id, entry, now);
      }
      entries = next;
    },
    stop: forget,
  };
}
