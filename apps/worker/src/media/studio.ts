import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Clock, Log } from '@iris/runtime';
import type { Static } from 'typebox';
import type { Seen, Sitting } from './child.js';
import type { CinemaLimits } from './cinema.js';
import type { MediaConfig } from './config.js';
import type { Look, LookLimits } from './look.js';

/** Decodes pictures: whatever is in them, at the cost of no more than a process of their own. */
export interface Studio {
  /** Undefined when it cannot be decoded within the limits. */
  look(bytes: Uint8Array, mime: string): Promise<Look | undefined>;
  close(): Promise<void>;
}

export interface StudioLimits extends LookLimits {
  readonly time_ms: number;
  readonly memory_bytes: number;
}

/** The limits that a worker's settings say. */
export const studioLimits = (config: Static<typeof MediaConfig>): StudioLimits => ({
  pixels: config.media_pixels,
  frames: config.media_frames,
  thumb_pixels: config.thumb_pixels,
  time_ms: config.media_look_ms,
  memory_bytes: config.media_memory_bytes,
});

/** The same for films. ffmpeg maps its libraries, which counts as well. */
export const cinemaLimits = (config: Static<typeof MediaConfig>): CinemaLimits => ({
  pixels: config.media_pixels,
  poster_pixels: config.thumb_pixels,
  time_ms: config.media_look_ms,
  memory_bytes: config.media_memory_bytes * 2,
});

interface Seat {
  child: ChildProcess | undefined;
  /** Those that wait for it or sit on it. */
  taken: number;
  last: Promise<unknown>;
}

/**
 * Each seat is a process, in which pictures are looked at one by one; one that takes too long or too much costs the process, and the next one
 * gets a new one. With as many seats as there are jobs at once, none waits for another's.
 */
export function processStudio(deps: { clock: Clock; log: Log; limits: StudioLimits; seats: number; program?: string }): Studio {
  const { clock, log, limits, program = fileURLToPath(new URL('./child.js', import.meta.url)) } = deps;
  const seats: Seat[] = Array.from({ length: deps.seats }, () => ({ child: undefined, taken: 0, last: Promise.resolve() }));
  let n = 0;

  const start = (seat: Seat): ChildProcess => {
    const made = fork(program, [String(limits.memory_bytes)], {
      serialization: 'advanced',
      // Of the environment it needs nothing, and gets nothing to tell.
      env: {},
      execArgv: ['--max-old-space-size=256'],
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    made.on('exit', () => {
      if (seat.child === made) seat.child = undefined;
    });
    made.on('error', (error) => log.warn('media.studio_failed', { error }));
    return made;
  };
  const sit = (seat: Seat, bytes: Uint8Array, mime: string): Promise<Look | undefined> =>
    new Promise((resolve) => {
      seat.child ??= start(seat);
      const own = seat.child;
      const sitting: Sitting = { n: ++n, bytes, mime, limits };
      const done = (seen: Look | undefined, why?: string) => {
        overdue.cancel();
        own.off('message', hear);
        own.off('exit', gone);
        if (why !== undefined) log.info('media.not_decoded', { mime, bytes: bytes.byteLength, why });
        resolve(seen);
      };
      const hear = (said: Seen) => {
        if (said.n === sitting.n) 'look' in said ? done(said.look) : done(undefined, said.fault);
      };
      // It does that to itself, and the kernel does it for the same reason.
      const gone = (code: number | null, signal: string | null) =>
        done(undefined, signal === 'SIGKILL' ? 'too much memory' : `its process ended with ${signal ?? code}`);
      const overdue = clock.after(limits.time_ms, () => {
        if (seat.child === own) seat.child = undefined;
        own.kill('SIGKILL');
        done(undefined, 'too slow');
      });
      own.on('message', hear);
      own.on('exit', gone);
      own.send(sitting, (error) => error && done(undefined, error.message));
    });

  return {
    look(bytes, mime) {
      const seat = seats.reduce((best, one) => (one.taken < best.taken ? one : best));
      seat.taken++;
      const next = seat.last.then(() => sit(seat, bytes, mime)).finally(() => void seat.taken--);
      seat.last = next.catch(() => {});
      return next;
    },
    async close() {
      for (const seat of seats) {
        await seat.last;
        seat.child?.kill('SIGKILL');
        seat.child = undefined;
      }
    },
  };
}
