import { type Attempt, attempt } from './attempt.js';
import { reconnectDelay } from './backoff.js';
import type { Clock, Timer } from './clock.js';
import { closing, type Down, type DownOf } from './frame.js';
import { type Random, randomId } from './ids.js';
import { inbox } from './inbox.js';
import { type Journal, journal } from './journal.js';
import type { Log } from './log.js';
import type { Connect } from './socket.js';
import type { Spool } from './spool.js';

/** Why a link ended for good. */
export type LinkEnd = {
  readonly reason: 'stopped' | 'auth' | 'revoked' | 'replaced';
  readonly code: number;
  readonly message: string;
};

export interface LinkEvents {
  /** A frame that was not seen before. While a returned promise is pending, the frame is not acked. */
  frame(frame: Down): void | Promise<void>;
  /** A frame that was handled before and came again: say once more what it needs to hear. */
  again(frame: Down): void;
  online(ack: DownOf<'hello.ack'>['payload']): void;
  /** What is unacked is on its way; now the state of open turns, and then traffic. */
  resumed(): void;
  /** The gateway knows nothing of us, and all begins anew: what was going on is over. */
  startedOver(): void;
  offline(code: number, reason: string): void;
  ended(end: LinkEnd): void;
}

export interface LinkOptions {
  readonly url: string;
  readonly token: string;
  readonly connect: Connect;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly spool: Spool;
  /** What `hello` says beside the sequences. */
  readonly hello: { readonly agent: string; readonly version?: string; readonly boot_id: string; readonly caps: object };
  readonly events: LinkEvents;
}

export interface Link {
  readonly journal: Journal;
  start(): void;
  /** Close for good. What is unacked stays in the spool. */
  close(): void;
  readonly online: boolean;
  /** Bytes the network has not taken yet. */
  buffered(): number;
  /** Milliseconds the gateway's clock is ahead of ours, as far as is known. */
  readonly skew_ms: number;
}

/** A link that lasted this long starts its next tries from the shortest wait. */
const stable_ms = 5_000;
const final = new Map<number, LinkEnd['reason']>([
  [closing.auth, 'auth'],
  [closing.revoked, 'revoked'],
  [closing.replaced, 'replaced'],
]);

/** Keeps one connection to the gateway, and for the time of a drain a second one that takes over. */
export function link(options: LinkOptions): Link {
  const { clock, log, events, spool } = options;
  const out = journal({ spool, clock, log });
  let current: Attempt | undefined;
  let standby: Attempt | undefined;
  let waiting: Timer | undefined;
  let tries = 0;
  let takeOverTries = 0;
  let ended = false;
  let skew_ms = 0;

  const received = inbox({
    from: spool.state.in_seq,
    handle: (frame) => events.frame(frame),
    again(frame) {
      events.again(frame);
      out.ackAgain();
    },
    processed: (seq) => out.processed(seq),
    gap(expected, got) {
      // One connection loses nothing on the way, so something is missing behind it: the gateway repeats it to a new one.
      log.warn('agent_link.gap', { expected, got });
      current?.drop('gap');
    },
    fault: (error, type) => log.error('agent_link.frame_fault', { error, type }),
  });

  function dial(): Attempt {
    const { url, token, connect } = options;
    const dialled: Attempt = attempt({
      url,
      token,
      connect,
      clock,
      log,
      events: {
        hello: () => ({
          ...options.hello,
          install_id: spool.state.install_id,
          last_seq: out.stored_in,
          // Also those that are over but for an ack: the gateway is still to hear their end from us.
          open_turns: [...spool.state.turns.keys()],
        }),
        greeted(ack) {
          if (isStranger(ack)) startOver(dialled);
          else greeted(dialled, ack);
        },
        acked: (seq) => out.acked(seq),
        // While a newer link of ours is up, the old one has nothing more to say that will not be said again.
        frame(frame) {
          if (dialled !== current) return;
          if (frame.type === 'drain') takeOver();
          else received.take(frame);
        },
        skew: (ms) => {
          skew_ms = ms;
        },
        lost: (code, reason) => lost(dialled, code, reason),
      },
    });
    return dialled;
  }

  /** A gateway that has acked more of us than it has now, or has never had a link of this agent, is not the one that our spool is about. */
  const isStranger = ({ epoch, last_seq }: DownOf<'hello.ack'>['payload']): boolean => {
    const { acked, in_seq } = spool.state;
    return last_seq < acked || (epoch === 1 && acked + in_seq > 0);
  };

  /** Both sides begin at 0, as a new installation. What waits for the old gateway is for nobody else's eyes, and goes. */
  function startOver(from: Attempt): void {
    log.error('agent_link.started_over', { dropped: spool.state.unacked.length });
    out.startOver(`in_${randomId(options.random, 20)}`);
    received.startOver();
    events.startedOver();
    from.drop('started over');
  }

  function greeted(greeting: Attempt, ack: DownOf<'hello.ack'>['payload']): void {
    if (greeting === standby) {
      const old = current;
      current = greeting;
      standby = undefined;
      takeOverTries = 0;
      if (old) retire(old);
    }
    if (ack.last_seq >= spool.state.next_seq) {
      log.error('agent_link.spool_behind', { gateway: ack.last_seq, spool: spool.state.next_seq - 1 });
    }
    out.acked(ack.last_seq);
    received.resumed();
    events.online(ack);
    out.resume(greeting);
    events.resumed();
  }

  /** `drain`: a second link comes up while this one still serves. */
  function takeOver(): void {
    if (standby || ended) return;
    log.info('agent_link.drain');
    standby = dial();
  }

  function retire(old: Attempt): void {
    out.detach(old);
    old.retire();
  }

  function lost(gone: Attempt, code: number, reason: string): void {
    out.detach(gone);
    if (gone === standby) {
      standby = undefined;
      log.warn('agent_link.takeover_failed', { code, reason });
      // The old link still serves; when it closes, the usual way begins.
      wait(reconnectDelay(takeOverTries++, options.random), () => {
        if (current?.greeted_at !== undefined) takeOver();
      });
      return;
    }
    if (gone !== current) return;
    if (gone.greeted_at !== undefined) {
      events.offline(code, reason);
      if (clock.now() - gone.greeted_at >= stable_ms) tries = 0;
    }
    current = standby;
    standby = undefined;
    // Also when it was closed as replaced: it was we who replaced it.
    if (current) return;
    const why = final.get(code);
    if (why) {
      end({ reason: why, code, message: reason });
      return;
    }
    // 1012: this edge goes, the others serve. Once at once; again and again, like any other loss.
    const delay_ms = code === closing.restarting && tries === 0 ? 0 : reconnectDelay(tries, options.random);
    tries++;
    log.info('agent_link.offline', { code, reason, retry_in_ms: delay_ms });
    if (delay_ms === 0) clock.soon(redial);
    else wait(delay_ms, redial);
  }

  function wait(ms: number, run: () => void): void {
    waiting?.cancel();
    waiting = clock.after(ms, run);
  }

  function redial(): void {
    if (!ended && !current) current = dial();
  }

  function end(how: LinkEnd): void {
    if (ended) return;
    ended = true;
    waiting?.cancel();
    for (const open of [current, standby]) if (open) retire(open);
    current = undefined;
    standby = undefined;
    events.ended(how);
  }

  return {
    journal: out,
    start: redial,
    close: () => end({ reason: 'stopped', code: closing.normal, message: '' }),
    get online() {
      return current?.greeted_at !== undefined;
    },
    buffered: () => current?.buffered() ?? 0,
    get skew_ms() {
      return skew_ms;
    },
  };
}
