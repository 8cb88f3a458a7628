import type { Timer } from './clock.js';
import type { DownOf, Up } from './frame.js';
import { createLane, type LaneContext } from './lane.js';
import type { Log } from './log.js';
import { LinkError } from './requests.js';
import { type OpenStream, openStream } from './stream.js';
import { createToolbox } from './tool.js';
import type { Answer, BusyReason, Outcome, StopMore, Turn, TurnHandler } from './types.js';

/** Milliseconds the agent's function gets to come back after it was told to stop; the gateway waits 10 s. */
export const stop_grace_ms = 8_000;
/** Bytes waiting for the network above which deltas are held back and sent as one. */
const congested_bytes = 256 * 1024;

export interface RunningTurn {
  readonly turn_id: string;
  readonly chat_id: string;
  readonly thread_id: string | null;
  readonly kind: 'chat' | 'command';
  run(handler: TurnHandler): void;
  /** The person's word, or the agent's own end: nothing more is said, and the function is given time to come back. */
  stop(outcome: 'cancelled' | 'interrupted'): void;
  /** The gateway that gave it is gone: it ends without a word. */
  abandon(): void;
  /** Whether the running function takes the text. */
  steer(text: string, message_id: string | undefined): boolean;
  snapshot(): Up;
  readonly ended: Promise<void>;
}

export interface TurnOptions {
  readonly context: LaneContext;
  readonly log: Log;
  readonly start: DownOf<'turn.start'>;
  readonly command: Turn['command'];
  /** False while another turn of the lane speaks: a command beside it says nothing of busy. */
  mayBeBusy(): boolean;
  onEnd(turn_id: string): void;
}

export function createTurn({ context, log, start, command, mayBeBusy, onEnd }: TurnOptions): RunningTurn {
  const { clock } = context;
  const { payload } = start;
  const turn_id = start.turn_id as string;
  const chat_id = start.chat_id as string;
  const thread_id = start.thread_id ?? null;
  const began = clock.now();
  const abort = new AbortController();
  const streams = new Set<OpenStream>();
  const asking = new Map<string, (reason: Exclude<Answer<unknown>['reason'], 'answered'>) => void>();
  let over: 'turn_ended' | 'stopped' | undefined;
  let closing = false;
  let stopping: 'cancelled' | 'interrupted' | undefined;
  let done = false;
  let grace: Timer | undefined;
  let main: OpenStream | undefined;
  let footer: StopMore = {};
  let usage: Record<string, unknown> | undefined;
  let reason: BusyReason = 'processing';
  let steered: ((text: string, message_id: string | undefined) => boolean) | undefined;
  let resolveEnded: () => void;
  const ended = new Promise<void>((resolve) => {
    resolveEnded = resolve;
  });

  const { lane, keep, pass } = createLane(context, {
    chat_id,
    thread_id,
    turn_id,
    before: () => {
      for (const stream of streams) stream.flush();
    },
    over: () => over,
    asking(picker_id, isOpen, close) {
      if (isOpen) asking.set(picker_id, close);
      else asking.delete(picker_id);
      busySelf();
    },
  });

  const busy = (next: BusyReason) => {
    if (next === reason || !mayBeBusy()) return;
    reason = next;
    keep({ type: 'agent.busy', payload: { reason } });
  };
  /** What the turn is doing by its own account: a question outweighs a tool. */
  const busySelf = () => {
    if (!closing) busy(asking.size > 0 ? 'waiting_input' : tools.open().length > 0 ? 'tool' : 'processing');
  };
  const tools = createToolbox({ clock, keep, pass, over: () => over !== undefined, changed: busySelf });

  const footerNow = (): StopMore => ({ ...footer, runtime: { latency: Math.round(clock.now() - began) / 1000, ...footer.runtime } });
  const open = (role: 'user' | 'assistant' | 'system' | 'cron' = 'assistant') => {
    const stream = openStream(
      {
        clock,
        newId: () => context.newId('m'),
        over: () => over !== undefined,
        keep,
        pass,
        congested: () => context.journal.congested || context.link.buffered() > congested_bytes,
        more: footerNow,
      },
      role,
      (gone) => {
        streams.delete(gone);
        if (main === gone) main = undefined;
      },
    );
    streams.add(stream);
    return stream;
  };
  const answer = (): OpenStream => {
    main ??= open();
    return main;
  };

  const turn: Turn = {
    ...lane,
    chat_id,
    turn_id,
    kind: payload.kind,
    attempt: payload.attempt,
    message: payload.message,
    command,
    user: payload.user,
    channel: payload.channel,
    signal: abort.signal,
    say: (text, more) => lane.say(text, (more?.role ?? 'assistant') === 'assistant' ? { ...footerNow(), ...more } : more),
    write: (chunk) => {
      if (!over) answer().write(chunk);
    },
    reason: (chunk) => {
      if (!over) answer().reason(chunk);
    },
    stop: (more) => main?.stop(more),
    stream: (options = {}) => open(options.role),
    tool: tools.begin,
    busy,
    meta({ usage: used, ...more }) {
      footer = { ...footer, ...more, runtime: { ...footer.runtime, ...more.runtime } };
      if (used !== undefined) usage = { ...usage, ...used };
    },
    onSteer(handler) {
      steered = handler;
    },
    title(name) {
      if (!payload.channel || over) return;
      lane.rename(name, { only_if_current: payload.channel.name }).catch((error) => log.debug('agent_link.title', { error }));
    },
  };

  /** Everything that is open is closed: messages with what they have, tools as failed, questions as unanswered. */
  const closeAll = (why: 'turn_ended' | 'stopped') => {
    closing = true;
    for (const stream of [...streams]) stream.stop();
    tools.closeAll(why === 'stopped' ? 'stopped' : 'not finished');
    over = why;
    for (const close of [...asking.values()]) close(why);
    steered = undefined;
  };

  const end = (outcome: Outcome, error?: string) => {
    if (done) return;
    done = true;
    grace?.cancel();
    if (!over) closeAll('turn_ended');
    context.journal.keep({
      type: 'turn.end',
      chat_id,
      thread_id,
      turn_id,
      payload: { outcome, ...(error === undefined ? {} : { error: error.slice(0, 2_000) }), ...(usage === undefined ? {} : { usage }) },
    });
    onEnd(turn_id);
    resolveEnded();
  };

  async function drive(handler: TurnHandler): Promise<void> {
    try {
      const result = await handler(turn);
      if (typeof result === 'string') turn.write(result);
      else if (result) await pour(result);
      end(stopping ?? 'completed');
    } catch (error) {
      if (stopping) return end(stopping);
      log.error('agent_link.turn_failed', { turn_id, error });
      end('failed', error instanceof Error ? error.message : String(error));
    }
  }

  /** Chunk by chunk until the turn is stopped; then the source is told, and not waited for. */
  async function pour(chunks: AsyncIterable<string>): Promise<void> {
    const source = chunks[Symbol.asyncIterator]();
    const stopped = new Promise<'stopped'>((resolve) => abort.signal.addEventListener('abort', () => resolve('stopped'), { once: true }));
    for (;;) {
      const next = abort.signal.aborted ? 'stopped' : await Promise.race([source.next(), stopped]);
      if (next === 'stopped') {
        void Promise.resolve(source.return?.()).catch(() => {});
        return;
      }
      if (next.done) return;
      turn.write(next.value);
    }
  }

  return {
    turn_id,
    chat_id,
    thread_id,
    kind: payload.kind,
    ended,
    run(handler) {
      if (stopping) return end(stopping);
      void drive(handler);
    },
    stop(outcome) {
      if (stopping || done) return;
      stopping = outcome;
      closeAll('stopped');
      grace = clock.after(stop_grace_ms, () => {
        log.warn('agent_link.stop_overdue', { turn_id });
        end(outcome);
      });
      abort.abort(new LinkError('closed', outcome === 'cancelled' ? 'the turn was stopped' : 'the agent is shutting down'));
    },
    abandon() {
      if (done) return;
      done = true;
      closing = true;
      grace?.cancel();
      stopping ??= 'interrupted';
      over = 'stopped';
      for (const stream of [...streams]) stream.stop();
      for (const close of [...asking.values()]) close('stopped');
      abort.abort(new LinkError('closed', 'the gateway has forgotten the turn'));
      onEnd(turn_id);
      resolveEnded();
    },
    steer(text, message_id) {
      if (over || !steered) return false;
      try {
        return steered(text, message_id) === true;
      } catch (error) {
        log.error('agent_link.steer_failed', { turn_id, error });
        return false;
      }
    },
    snapshot: () => ({
      type: 'turn.snapshot',
      chat_id,
      thread_id,
      turn_id,
      payload: {
        messages: [...streams].flatMap((stream) => stream.snapshot() ?? []),
        tools: tools.open(),
        pickers: [...asking.keys()],
        reason,
      },
    }),
  };
}
