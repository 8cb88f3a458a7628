import type { AnyFrame, Payload } from '../frames.js';
import type { Patience } from '../record.js';
import type { TestAgent } from '../test-agent.js';
import type { Scope, TestDevice } from '../test-device.js';
import type { TestTurn } from '../test-turn.js';
import { broken } from './check.js';

/** The scripted agent of a tenant. Turns that no check has asked for it accepts and ends at once, so that lanes do not fill. */
export interface Actor {
  readonly agent: TestAgent;
  /** `device` says a text, and the turn that comes of it, accepted unless told otherwise. */
  turn(
    device: TestDevice,
    text: string,
    options?: Scope & { accept?: boolean; payload?: Payload },
  ): Promise<{ echo: AnyFrame; turn: TestTurn }>;
  /** The turn of a text that is said, or will be. */
  claim(text: string): Promise<TestTurn>;
  /** End what a check has left open. */
  tidy(): void;
}

/** @param agentWith makes the agent, which takes its turns by this script */
export function actorOf(patience: Patience, agentWith: (script: (turn: TestTurn) => void) => TestAgent): Actor {
  const claims = new Map<string, TestTurn | undefined>();
  const taken = new Set<TestTurn>();
  const agent = agentWith((turn) => {
    if (claims.has(turn.text)) {
      claims.set(turn.text, turn);
      taken.add(turn);
      patience.stir();
      return;
    }
    turn.accept();
    turn.end();
  });
  const claim = async (text: string) => {
    claims.set(text, undefined);
    try {
      return await patience.wait(() => claims.get(text), { describe: () => `no turn.start for ${JSON.stringify(text)}` });
    } finally {
      claims.delete(text);
    }
  };
  return {
    agent,
    claim,
    async turn(device, text, { accept = true, payload = {}, ...scope } = {}) {
      const starting = claim(text);
      starting.catch(() => {});
      const echo = await device.send(text, { ...payload, ...scope });
      if (echo.type !== 'message') throw broken('MSG1', `message.send was answered with ${JSON.stringify(echo)}`);
      const turn = await starting;
      if (accept) turn.accept();
      return { echo, turn };
    },
    tidy() {
      claims.clear();
      for (const turn of taken) {
        if (turn.state === 'offered') turn.accept();
        if (turn.state !== 'accepted') continue;
        for (const message_id of turn.running.keys()) turn.stop({ message_id });
        turn.end();
      }
      taken.clear();
    },
  };
}
