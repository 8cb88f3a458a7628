import { type Catalog, commandOf } from './commands.js';
import type { DownOf } from './frame.js';
import type { LaneContext } from './lane.js';
import type { Log } from './log.js';
import { createTurn, type RunningTurn } from './turn.js';
import type { TurnHandler } from './types.js';

/** The turns that run in this process. */
export interface Turns {
  /** Begin it, unless it was begun before, by this process or an earlier one: tools may have acted, so never again. */
  begin(start: DownOf<'turn.start'>): void;
  stop(turn_id: string): void;
  /** Those of a lane that is gone; without a thread, of the whole channel. */
  stopLane(chat_id: string, thread_id: string | undefined): void;
  stopAll(): void;
  abandonAll(): void;
  steer(frame: DownOf<'agent.steer'>): boolean;
  /** Say the whole state of every open turn, for a gateway that may have missed what passed. */
  snapshot(): void;
  allEnded(): Promise<unknown>;
}

export function runningTurns(options: { context: LaneContext; log: Log; catalog: () => Catalog; onTurn: TurnHandler }): Turns {
  const { context, log } = options;
  const { journal } = context;
  const turns = new Map<string, RunningTurn>();
  const besideAnother = (turn: RunningTurn) => [...turns.values()].some((other) => other !== turn && sameLane(other, turn));

  return {
    begin(start) {
      const { turn_id, chat_id } = start;
      if (turn_id === undefined || chat_id === undefined) throw new Error('turn.start without turn_id or chat_id');
      if (turns.has(turn_id) || journal.state.turns.has(turn_id) || journal.state.ended.has(turn_id)) return;
      const command = commandOf(options.catalog(), start.payload.message.text);
      const turn: RunningTurn = createTurn({
        context,
        log,
        start,
        command: command && { name: command.name, args: command.args },
        mayBeBusy: () => turn.kind === 'chat' || !besideAnother(turn),
        onEnd: (ended) => turns.delete(ended),
      });
      turns.set(turn_id, turn);
      journal.keep({ type: 'turn.accepted', turn_id, chat_id, thread_id: start.thread_id ?? null, payload: {} });
      // Not before it would survive a crash that it was begun.
      journal.onceStored(() => turn.run(command?.run ?? options.onTurn));
    },
    stop: (turn_id) => turns.get(turn_id)?.stop('cancelled'),
    stopLane(chat_id, thread_id) {
      for (const turn of turns.values()) {
        if (turn.chat_id === chat_id && (thread_id === undefined || turn.thread_id === thread_id)) turn.stop('cancelled');
      }
    },
    abandonAll() {
      for (const turn of turns.values()) turn.abandon();
    },
    stopAll() {
      for (const turn of turns.values()) turn.stop('interrupted');
    },
    steer: ({ turn_id, payload }) => turns.get(turn_id ?? '')?.steer(payload.text, payload.message_id) ?? false,
    snapshot() {
      for (const turn of turns.values()) journal.keep(turn.snapshot());
    },
    allEnded: () => Promise.all([...turns.values()].map((turn) => turn.ended)),
  };
}

const sameLane = (a: RunningTurn, b: RunningTurn): boolean => a.chat_id === b.chat_id && a.thread_id === b.thread_id;
