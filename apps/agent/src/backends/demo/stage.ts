import type { Agent, Turn } from '@iris/agent-link';
import type { Clock, Timer } from '@iris/runtime';

/** What every scene of the demo has at hand. */
export interface Stage {
  readonly clock: Clock;
  readonly pace_ms: number;
  /** Passes when the time is over or the turn is stopped, whichever is first. */
  pause(turn: Turn, ms: number): Promise<void>;
  /** Write text as a model would: word by word, at the stage's pace. Breaks off when the turn is stopped. */
  speak(turn: Turn, text: string): Promise<void>;
  /** The same above the text. */
  think(turn: Turn, text: string): Promise<void>;
  /** Outside any turn, later; forgotten when the agent ends. */
  later(ms: number, run: () => void): void;
  agent(): Agent;
}

export function createStage(options: { clock: Clock; pace_ms: number }): Stage & { attach(agent: Agent): void; close(): void } {
  const { clock, pace_ms } = options;
  const timers = new Set<Timer>();
  let attached: Agent | undefined;

  const pause = (turn: Turn, ms: number): Promise<void> =>
    new Promise((resolve) => {
      if (turn.signal.aborted) return resolve();
      const done = () => {
        timer.cancel();
        turn.signal.removeEventListener('abort', done);
        resolve();
      };
      const timer = clock.after(ms, done);
      turn.signal.addEventListener('abort', done);
    });
  const chunkwise = async (turn: Turn, text: string, put: (chunk: string) => void): Promise<void> => {
    for (const chunk of words(text)) {
      if (turn.signal.aborted) return;
      put(chunk);
      if (pace_ms > 0) await pause(turn, pace_ms);
    }
  };

  return {
    clock,
    pace_ms,
    pause,
    speak: (turn, text) => chunkwise(turn, text, turn.write),
    think: (turn, text) => chunkwise(turn, text, turn.reason),
    later(ms, run) {
      const timer = clock.after(ms, () => {
        timers.delete(timer);
        run();
      });
      timers.add(timer);
    },
    agent() {
      if (!attached) throw new Error('no agent is attached to the stage');
      return attached;
    },
    attach(agent) {
      attached = agent;
    },
    close() {
      for (const timer of timers) timer.cancel();
      timers.clear();
    },
  };
}

/** The text in pieces that end where a word does. Joined they are the text. */
export const words = (text: string): string[] => text.match(/\s*\S+\s?|\s+$/g) ?? [];
