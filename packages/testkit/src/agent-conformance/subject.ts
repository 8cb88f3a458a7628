import type { ScriptedGateway } from '@iris/agent-link/testing';

/** The agent that is asked, and the gateway that it sees. */
export interface Subject {
  readonly gateway: ScriptedGateway;
  /** What it is asked; every agent answers something. */
  readonly ask: string;
  /** What it takes a second or more to answer. */
  readonly ask_long: string;
  /** Milliseconds an agent may take to do what it must. */
  readonly wait_ms: number;
  /** Kill the agent's process without a word and start it again; undefined where that cannot be done from here. */
  readonly restart?: () => Promise<void>;
}

/** One thing that the link asks of an agent. */
export interface AgentCheck {
  readonly rules: readonly string[];
  readonly title: string;
  /** Resolves with a few words of evidence. Rejects when it does not hold; `Skipped` when this agent cannot be asked. */
  run(subject: Subject, say: Conversation): Promise<string>;
}

export class Skipped extends Error {}

/** What checks say to an agent and wait for. */
export interface Conversation {
  /** Resolves when `found` gives something. @throws with `what` after `wait_ms` */
  until<T>(found: () => T | undefined | false, what: string, wait_ms?: number): Promise<T>;
  linked(): Promise<void>;
  /** A turn that was offered and accepted. */
  begun(text: string, more?: Parameters<ScriptedGateway['startTurn']>[1]): Promise<string>;
  ended(turn_id: string, wait_ms?: number): Promise<string>;
  /** Until everything that the agent has sent by now is here. */
  caughtUp(): Promise<void>;
}

export function conversation({ gateway, wait_ms }: Subject): Conversation {
  let pings = 0;
  const self: Conversation = {
    async until(found, what, limit_ms = wait_ms) {
      for (const give_up = Date.now() + limit_ms; ; ) {
        const value = found();
        if (value !== undefined && value !== false) return value;
        if (Date.now() > give_up) throw new Error(`${what}, for ${limit_ms} ms`);
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    },
    linked: async () => void (await self.until(() => gateway.linked, 'no hello of the agent')),
    async begun(text, more) {
      await self.linked();
      const turn_id = gateway.startTurn(text, more);
      await self.until(() => gateway.turns.get(turn_id)?.accepted, `turn.start for "${text}" is not accepted`);
      return turn_id;
    },
    ended: (turn_id, limit_ms) => self.until(() => gateway.turns.get(turn_id)?.outcome, `${turn_id} does not end`, limit_ms),
    async caughtUp() {
      const ts = ++pings;
      await self.linked();
      gateway.say({ type: 'ping', payload: { ts } });
      await self.until(
        () => gateway.passing.some((frame) => frame.type === 'pong' && (frame.payload as { ts?: number }).ts === ts),
        'ping is not answered with pong',
      );
    },
  };
  return self;
}
