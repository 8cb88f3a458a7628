import type { Stream, Turn } from '@iris/agent-link';
import type { Clock, Timer } from '@iris/runtime';
import type { RelayEvent } from './contract.js';
import { askedIn } from './questions.js';

type Inbound = (text: string, more?: Partial<RelayEvent> & { name?: string }) => void;

/**
 * What goes on in one lane of a Hermes on the relay. The contract has no end of a turn: Hermes marks what is final (`notify`), and a
 * turn is over when nothing has come behind that for a moment.
 */
export interface LaneWork {
  run(turn: Turn): Promise<void>;
  /** The turn that what Hermes says now belongs to. */
  readonly turn: Turn | undefined;
  /** Hermes says a text; gives the id it has from now on. `unsaid`: it is not for the person; undefined: no turn is running. */
  said(text: string, how: { final: boolean; grows: boolean }): string | 'unsaid' | undefined;
  /** Another text for what was said. False: it has ended, or is not known. */
  edited(message_id: string, text: string, final: boolean): boolean;
  typing(on: boolean): void;
  /** A question of Hermes is open, or no longer: a turn is not over meanwhile. */
  asking(open: boolean): void;
  /** Hermes is back after its connection was lost: the same process, which goes on, or a new one, which knows of no turn. */
  returned(): void;
}

interface Running {
  readonly turn: Turn;
  readonly finish: (fault?: string) => void;
  readonly ended: Promise<void>;
  /** Runs from a final word on. */
  quiet?: Timer | undefined;
  /** Runs from Hermes' return on, until it says something. */
  lost?: Timer | undefined;
}

/** What a running turn may wait for. */
const urgent: ReadonlySet<string> = new Set(['/approve', '/deny']);
/** Milliseconds without a word behind a final one after which the turn is over. */
const quiet_ms = 600;
/** Milliseconds in which what Hermes says to a stop is not for the person. */
const hush_ms = 5_000;
/** Milliseconds that Hermes is given to be done with what was stopped. */
const rest_after_stop_ms = 1_500;
/** Milliseconds between two interrupts of what was stopped. */
const again_ms = 400;
/** Milliseconds after its return in which Hermes shows that it goes on with a turn. */
const return_ms = 20_000;
/** Hermes waits for answers itself; a little less than it does. */
export const patience_ms = 280_000;

export function laneWork({ clock, inbound, interrupt }: { clock: Clock; inbound: Inbound; interrupt: () => void }): LaneWork {
  /** The chat turn, and commands beside it, which are answered first. */
  const running: Running[] = [];
  const streams = new Map<string, { stream: Stream; turn: Turn }>();
  let hushed_until = 0;
  /** Replies of Hermes to answers that are commands: they come before anything else that is final. */
  let replies = 0;
  let open = 0;
  let insisting: Timer | undefined;
  let stopped_at = Number.NEGATIVE_INFINITY;

  const current = () => running.at(-1);
  const busyAgain = () => {
    const one = current();
    one?.quiet?.cancel();
    one?.lost?.cancel();
    if (one) one.quiet = one.lost = undefined;
  };
  const settle = () => {
    const one = current();
    if (one === undefined) return;
    busyAgain();
    one.quiet = clock.after(quiet_ms, () => {
      if (open === 0) one.finish();
      else settle();
    });
  };
  /** Hermes hears an interrupt only while it works: one that comes before it has begun would be lost. */
  const insist = () => {
    interrupt();
    insisting?.cancel();
    insisting = clock.every(again_ms, () => {
      if (hushed() && running.length === 0) interrupt();
      else insisting?.cancel();
    });
  };
  const hushed = () => clock.now() < hushed_until;

  const work: LaneWork = {
    get turn() {
      return current()?.turn;
    },
    async run(turn) {
      // Hermes 0.19 answers a command beside a running turn before it reads on, and then waits in vain for what it has not read: only
      // commands that the running turn waits for go at once.
      const before = running.find((one) => one.turn.kind === 'chat');
      if (before !== undefined && turn.kind === 'command' && !urgent.has(turn.command?.name ?? '')) {
        await Promise.race([before.ended, new Promise((resolve) => turn.signal.addEventListener('abort', resolve, { once: true }))]);
        if (turn.signal.aborted) return;
      }
      // One that came at once would be taken into the run that is being interrupted, where Hermes 0.19 hears no second stop.
      const rest_ms = stopped_at + rest_after_stop_ms - clock.now();
      if (rest_ms > 0) {
        await new Promise<void>((resolve) => {
          clock.after(rest_ms, resolve);
          turn.signal.addEventListener('abort', () => resolve(), { once: true });
        });
        if (turn.signal.aborted) return;
      }
      hushed_until = 0;
      let settled: () => void = () => {};
      const ended = new Promise<void>((resolve) => {
        settled = resolve;
      });
      await new Promise<void>((resolve, reject) => {
        const finish = (fault?: string) => {
          one.quiet?.cancel();
          one.lost?.cancel();
          const at = running.indexOf(one);
          if (at >= 0) running.splice(at, 1);
          for (const [id, entry] of streams) if (entry.turn === turn) streams.delete(id);
          settled();
          if (fault === undefined) resolve();
          else reject(new Error(fault));
        };
        const one: Running = { turn, finish, ended: turn.kind === 'chat' ? ended : Promise.resolve() };
        running.push(one);
        turn.signal.addEventListener('abort', () => {
          if (turn.kind === 'chat') {
            stopped_at = clock.now();
            hushed_until = stopped_at + hush_ms;
            insist();
          }
          finish();
        });
        const { message_id, text, media = [], reply_to } = turn.message;
        const urls = media.flatMap(({ url }) => (url === undefined ? [] : [url]));
        inbound(text, {
          message_id,
          ...(turn.channel === undefined ? {} : { name: turn.channel.name }),
          ...(urls.length === 0 ? {} : { media_urls: urls }),
          ...(reply_to ? { reply_to_message_id: reply_to } : {}),
        });
      });
    },
    said(text, { final, grows }) {
      if (hushed()) {
        // The first final word is the answer to the stop; what follows is news.
        if (final) hushed_until = 0;
        return 'unsaid';
      }
      const turn = current()?.turn;
      if (turn === undefined) return undefined;
      if (final && replies > 0) {
        replies--;
        return 'unsaid';
      }
      if (grows && !final) {
        busyAgain();
        const stream = turn.stream();
        stream.replace(text);
        streams.set(stream.message_id, { stream, turn });
        return stream.message_id;
      }
      if (final) {
        settle();
        return turn.say(text, turn.kind === 'command' ? { role: 'system' } : {});
      }
      busyAgain();
      const asked = askedIn(text);
      if (asked !== undefined) {
        work.asking(true);
        void asked.ask(turn.ask, patience_ms, turn.signal).then((answer) => {
          work.asking(false);
          if (answer === null) return;
          if (answer.startsWith('/')) replies++;
          inbound(answer);
        });
        return `q-${turn.turn_id}`;
      }
      turn.commentary(text);
      return `c-${turn.turn_id}`;
    },
    edited(message_id, text, final) {
      const entry = streams.get(message_id);
      if (entry === undefined) return false;
      entry.stream.replace(text);
      if (!final) return true;
      streams.delete(message_id);
      entry.stream.stop();
      settle();
      return true;
    },
    typing(on) {
      if (on) busyAgain();
      current()?.turn.typing(on);
    },
    asking(begins) {
      open += begins ? 1 : -1;
    },
    returned() {
      for (const one of running) {
        one.lost?.cancel();
        one.lost = clock.after(return_ms, () => one.finish('Hermes was restarted, or did not go on with it'));
      }
    },
  };
  return work;
}
