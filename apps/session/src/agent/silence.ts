import type { AgentId, TenantId, TurnId } from '@iris/protocol';
import type { Clock, Log, Meter } from '@iris/runtime';
import type { TurnState } from './room.js';

/** When each running turn was last heard of. Nothing is done about one that is silent: an operator is told, once per silence. */
export interface Silence {
  /** Its agent said something about the turn. */
  heard(agent_id: AgentId, turn_id: TurnId | undefined): void;
  /** Whether it has said anything of the turn after this moment, or may have: what was said to another instance is not known here. */
  saidSince(agent_id: AgentId, turn_id: TurnId, at: number): boolean;
  /** Every second, all that run here. What is not among them any more is forgotten. */
  look(running: Iterable<readonly [TenantId, TurnState]>): void;
  stop(): void;
}

interface Entry {
  at: number;
  told: boolean;
  /** Whether a person is waited for: then it is not the agent's silence. */
  waits: boolean;
}

export function createSilence(deps: { clock: Clock; log: Log; meter: Meter; silence_ms: number }): Silence {
  const { clock, log } = deps;
  let entries = new Map<string, Entry>();
  const keyOf = (agent_id: AgentId, turn_id: TurnId) => `${agent_id}\n${turn_id}`;
  const told = deps.meter.counter('iris_session_turns_silent_total');
  const forget = deps.meter.gauge(
    'iris_session_turns_silent',
    () => [...entries.values()].filter((entry) => entry.told && !entry.waits).length,
  );
  return {
    heard(agent_id, turn_id) {
      if (turn_id === undefined) return;
      const key = keyOf(agent_id, turn_id);
      const entry = entries.get(key);
      // What is no running turn goes with the next look.
      if (entry === undefined) return void entries.set(key, { at: clock.now(), told: false, waits: false });
      entry.at = clock.now();
      if (entry.told) log.info('session.turn_heard_again', { agent_id, turn_id });
      entry.told = false;
    },
    saidSince(agent_id, turn_id, at) {
      const entry = entries.get(keyOf(agent_id, turn_id));
      return entry === undefined || entry.at > at;
    },
    look(running) {
      const now = clock.now();
      const next = new Map<string, Entry>();
      for (const [tenant_id, { turn_id, agent_id, chat_id, thread_id, accepted, ended, reason }] of running) {
        if (!accepted || ended) continue;
        const key = keyOf(agent_id, turn_id);
        const entry = entries.get(key) ?? { at: now, told: false, waits: false };
        next.set(key, entry);
        entry.waits = reason === 'waiting_input';
        const silent_ms = now - entry.at;
        if (entry.told || silent_ms < deps.silence_ms) continue;
        entry.told = true;
        told.add(1, { reason: reason ?? 'none' });
        log.warn('session.turn_silent', { tenant_id, agent_id, turn_id, chat_id, thread_id, reason, silent_ms });
      }
      entries = next;
    },
    stop: forget,
  };
}
