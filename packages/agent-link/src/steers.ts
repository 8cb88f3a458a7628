import type { DownOf } from './frame.js';
import type { Journal } from './journal.js';

interface Given {
  readonly frame: DownOf<'agent.steer'>;
  readonly accepted: boolean;
  /** An ack of this `seq` or above says that the gateway has heard the answer: on the last link, it went before that frame. */
  heard_at: number;
}

/** Answers to `agent.steer`. They are not durable, so each is said again on every new link until it must have been heard. */
export interface Steers {
  answer(frame: DownOf<'agent.steer'>, accepted: boolean): void;
  /** The gateway asks again. */
  again(frame: DownOf<'agent.steer'>): void;
  /** A new link is up. */
  resumed(): void;
}

export function steers(journal: Pick<Journal, 'say' | 'state'>): Steers {
  const given = new Map<number, Given>();
  const say = ({ id, turn_id }: DownOf<'agent.steer'>, accepted: boolean) =>
    void journal.say({
      type: 'agent.steer',
      ...(id === undefined ? {} : { id: String(id) }),
      ...(turn_id === undefined ? {} : { turn_id }),
      payload: { accepted },
    });
  const forget = () => {
    for (const [seq, { heard_at }] of given) if (heard_at <= journal.state.acked) given.delete(seq);
  };
  return {
    answer(frame, accepted) {
      forget();
      given.set(frame.seq ?? 0, { frame, accepted, heard_at: journal.state.next_seq });
      say(frame, accepted);
    },
    again(frame) {
      // One of an earlier process: its turn is over, so nobody took it.
      if (!given.has(frame.seq ?? 0)) say(frame, false);
    },
    resumed() {
      forget();
      for (const one of given.values()) {
        one.heard_at = journal.state.next_seq;
        say(one.frame, one.accepted);
      }
    },
  };
}
