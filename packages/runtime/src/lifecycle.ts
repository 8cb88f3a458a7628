import type { Clock } from './clock.js';
import type { Log } from './log.js';

/**
 * What a process, or a part of one, has started, in order. Stopping is the same list backwards: what came last leans on
 * what came before it.
 */
export interface Lifecycle {
  /**
   * Start one thing and remember how to stop it. When starting fails, everything started so far is stopped, backwards, and the
   * error is thrown on.
   */
  start<T>(name: string, start: () => T | Promise<T>, stop?: (started: T) => unknown): Promise<T>;
  /** Backwards, each waited for, all within the deadline; what is late or fails is logged and left behind. Once, however often it is called. */
  stop(): Promise<StopReport>;
  readonly stopping: boolean;
}

export interface StopReport {
  /** Names of what failed to stop, or did not in time. */
  readonly left: readonly string[];
}

/** @param options.stop_ms milliseconds for stopping everything */
export function lifecycle({ log, clock, stop_ms }: { log: Log; clock: Clock; stop_ms: number }): Lifecycle {
  const started: { name: string; stop: () => unknown }[] = [];
  const starting = new Set<Promise<unknown>>();
  let report: Promise<StopReport> | undefined;

  const stopAll = async (): Promise<StopReport> => {
    const deadline = clock.now() + stop_ms;
    const left: string[] = [];
    const stop = async (name: string, run: () => unknown) => {
      const begun = clock.now();
      const fault = await within(clock, Math.max(0, deadline - begun), run);
      if (fault === undefined) return log.debug('lifecycle.stopped', { part: name, took_ms: clock.now() - begun });
      left.push(name);
      log.error('lifecycle.stop_failed', { part: name, error: fault });
    };
    // What is half started can only be stopped when it stands.
    if (starting.size > 0) await stop('starting', () => Promise.allSettled(starting));
    for (let part = started.pop(); part !== undefined; part = started.pop()) await stop(part.name, part.stop);
    return { left };
  };

  return {
    async start(name, start, stop) {
      if (report !== undefined) throw new Error(`${name}: not started, everything is stopping`);
      const begun = clock.now();
      const pending = (async () => {
        const value = await start();
        if (stop !== undefined) started.push({ name, stop: () => stop(value) });
        return value;
      })();
      starting.add(pending);
      try {
        const value = await pending;
        log.debug('lifecycle.started', { part: name, took_ms: clock.now() - begun });
        return value;
      } catch (error) {
        log.error('lifecycle.start_failed', { part: name, error });
        starting.delete(pending);
        report ??= stopAll();
        await report;
        throw error;
      } finally {
        starting.delete(pending);
      }
    },
    stop() {
      report ??= stopAll();
      return report;
    },
    get stopping() {
      return report !== undefined;
    },
  };
}

/** Undefined when `run` ended well in time, else why not. Past the deadline it is still called, but not waited for. */
function within(clock: Clock, ms: number, run: () => unknown): Promise<Error | undefined> {
  return new Promise((resolve) => {
    const timer = clock.after(ms, () => resolve(new Error(`not stopped within ${ms} ms`)));
    const settle = (outcome: Error | undefined) => {
      timer.cancel();
      resolve(outcome);
    };
    void (async () => run())().then(
      () => settle(undefined),
      (error: unknown) => settle(error instanceof Error ? error : new Error(String(error))),
    );
  });
}

/** What of the operating system {@link runProcess} needs; tests give their own. */
export interface ProcessEvents {
  on(event: string, listener: (value: unknown) => void): unknown;
  exit(code: number): void;
}

/**
 * The life of a process: `start` lists what it consists of, SIGTERM and SIGINT stop that list backwards and exit with 0 (1 when
 * something was left behind), a second signal exits at once, and what nobody caught is logged and exits with 1: its state is unknown, and
 * every promise of the product survives the loss of a process.
 */
export async function runProcess(
  options: { log: Log; clock: Clock; stop_ms: number; events?: ProcessEvents },
  start: (life: Lifecycle) => Promise<void>,
): Promise<void> {
  const { log, events = process as ProcessEvents } = options;
  const life = lifecycle(options);
  let signalled = false;
  const onSignal = (signal: string, code: number) => {
    events.on(signal, () => {
      if (signalled) return events.exit(code);
      signalled = true;
      log.info('lifecycle.signal', { signal });
      void life.stop().then(({ left }) => events.exit(left.length === 0 ? 0 : 1));
    });
  };
  const onFault = (event: string, name: string) => {
    events.on(event, (error) => {
      log.error(name, { error });
      events.exit(1);
    });
  };
  onSignal('SIGTERM', 143);
  onSignal('SIGINT', 130);
  onFault('uncaughtException', 'lifecycle.uncaught');
  onFault('unhandledRejection', 'lifecycle.unhandled_rejection');
  try {
    await start(life);
    if (!signalled) log.info('lifecycle.ready');
  } catch (error) {
    // A start that a signal cut short is no fault: that signal's exit code stands.
    if (signalled) return;
    log.error('lifecycle.failed', { error });
    await life.stop();
    events.exit(1);
  }
}
