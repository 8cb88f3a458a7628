import type { Clock, Log, Random, Timer } from '@iris/runtime';
import { Redis } from 'ioredis';
import { OutboxUnavailable } from './outbox.js';
import { scripts } from './scripts.js';

/**
 * One connection to one run of the server. Made only after the server has told its run id on this very connection, and dead for ever when
 * the connection is: so a command can never go out with the run id of another run.
 */
export interface Line {
  readonly run_id: string;
  readonly client: Redis;
}

/** A line when there is one, a new one when it breaks. */
export interface RedisLink {
  /**
   * Do some work on the line. Waits for a line, then for the work, {@link patience_ms} in all.
   * @throws OutboxUnavailable when it takes longer, when the line breaks meanwhile, or when the server refuses work for now
   */
  run<R>(operation: string, work: (line: Line) => Promise<R>): Promise<R>;
  readonly connected: boolean;
  onReconnected(listener: () => void): () => void;
  close(): Promise<void>;
}

export const patience_ms = 2_000;
/** A command unanswered for this long means that the server is frozen or out of reach, though the socket may be open. */
const frozen_ms = 1_000;
/** Replies with which a server says "not now": full, loading, a replica, saving failed, a script that runs too long. */
const notNow = /^(OOM|LOADING|READONLY|MISCONF|BUSY|MASTERDOWN|NOREPLICAS|CLUSTERDOWN|TRYAGAIN)\b/;

/** Resolves once a server was reached, however long that takes. */
export async function redisLink(options: {
  readonly url: string;
  readonly name: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
}): Promise<RedisLink> {
  const { clock, random, log } = options;
  let line: Line | undefined;
  let closed = false;
  let retry: Timer | undefined;
  let firstReached: (() => void) | undefined;
  const listeners = new Set<() => void>();
  /** Those that wait for a line, and those that work on one. */
  const waiting = new Set<() => void>();
  const working = new Set<() => void>();

  const lose = (lost: Line, reason: string) => {
    lost.client.disconnect();
    if (line !== lost) return;
    line = undefined;
    if (!closed) log.warn('outbox.disconnected', { reason });
    for (const fail of [...working]) fail();
    again();
  };
  const again = () => {
    if (closed) return;
    // Jittered: everyone lost the server in the same instant.
    retry = clock.after(50 + random.unit() * 250, () => void dial());
  };
  const dial = async () => {
    try {
      const made = await openLine(options);
      made.client.once('close', () => lose(made, 'closed'));
      if (closed || made.client.status !== 'ready') {
        made.client.disconnect();
        return again();
      }
      line = made;
      log.info('outbox.connected', { run_id: made.run_id });
    } catch (error) {
      log.warn('outbox.unreachable', { error });
      return again();
    }
    if (firstReached !== undefined) firstReached();
    else for (const listener of [...listeners]) listener();
    firstReached = undefined;
    for (const go of [...waiting]) go();
  };

  const haveLine = (until: number): Promise<Line> =>
    new Promise((resolve, reject) => {
      // The other side has hung up, and this one has not been told yet.
      if (line !== undefined && !line.client.stream.writable) lose(line, 'ended');
      if (line !== undefined) return resolve(line);
      const go = () => {
        timer.cancel();
        waiting.delete(go);
        if (line !== undefined) resolve(line);
        else reject(new OutboxUnavailable(closed ? 'closed' : 'cannot be reached'));
      };
      const timer = clock.after(until - clock.now(), go);
      waiting.add(go);
    });

  const workOn = <R>(on: Line, operation: string, until: number, work: (line: Line) => Promise<R>): Promise<R> =>
    new Promise((resolve, reject) => {
      const began = clock.now();
      const done = () => {
        timer.cancel();
        working.delete(fail);
      };
      const fail = () => {
        done();
        reject(new OutboxUnavailable(`${operation}: the connection broke`));
      };
      const timer = clock.after(until - began, () => {
        done();
        reject(new OutboxUnavailable(`${operation}: no answer`));
        if (clock.now() - began >= frozen_ms) lose(on, 'frozen');
      });
      working.add(fail);
      work(on).then(
        (result) => {
          done();
          resolve(result);
        },
        (error: unknown) => {
          done();
          reject(translate(operation, error));
          if (error instanceof Error && error.message.startsWith('READONLY')) lose(on, 'read only');
        },
      );
    });

  const link: RedisLink = {
    async run(operation, work) {
      if (closed) throw new OutboxUnavailable(`${operation}: closed`);
      const until = clock.now() + patience_ms;
      return workOn(await haveLine(until), operation, until, work);
    },
    get connected() {
      return line !== undefined;
    },
    onReconnected(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    async close() {
      if (closed) return;
      closed = true;
      retry?.cancel();
      listeners.clear();
      for (const go of [...waiting]) go();
      if (line !== undefined) lose(line, 'closed');
    },
  };

  await new Promise<void>((resolve) => {
    firstReached = resolve;
    void dial();
  });
  return link;
}

function translate(operation: string, error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const lost = error.name !== 'ReplyError' || notNow.test(error.message);
  return lost ? new OutboxUnavailable(`${operation}: ${error.message}`, { cause: error }) : error;
}

/** Connect, ask which run of the server this is, and load the scripts. */
async function openLine({ url, name, clock }: { url: string; name: string; clock: Clock }): Promise<Line> {
  const client = new Redis(url, {
    lazyConnect: true,
    connectionName: name,
    connectTimeout: patience_ms,
    disconnectTimeout: 500,
    // One client is one connection: nothing is kept for, or sent again on, another one.
    retryStrategy: () => null,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    enableReadyCheck: false,
    protocol: 2,
  });
  // Every failure also ends in a rejected command or a close.
  client.on('error', () => {});
  const late = clock.after(patience_ms, () => client.disconnect());
  try {
    await client.connect();
    const run_id = /^run_id:(\w+)/m.exec(await client.info('server'))?.[1];
    if (run_id === undefined) throw new Error('the server does not tell its run id (INFO server)');
    await Promise.all([...scripts.values()].map(({ text }) => client.script('LOAD', text)));
    return { run_id, client };
  } catch (error) {
    client.disconnect();
    throw error;
  } finally {
    late.cancel();
  }
}
