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

/** Looked at one by one; one that takes too long or too much costs the process, and the next one gets a new one. */
export function processStudio(deps: { clock: Clock; log: Log; limits: StudioLimits; program?: string }): Studio {
  const { clock, log, limits, program = fileURLToPath(new URL('./child.js', import.meta.url)) } = deps;
  let child: ChildProcess | undefined;
  let last: Promise<unknown> = Promise.resolve();
  let n = 0;

  const start = (): ChildProcess => {
    const made = fork(program, [String(limits.memory_bytes)], {
      serialization: 'advanced',
      // Of the environment it needs nothing, and gets nothing to tell.
      env: {},
      execArgv: ['--max-old-space-size=256'],
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    made.on('exit', () => {
      if (child === made) child = undefined;
    });
    made.on('error', (error) => log.warn('media.studio_failed', { error }));
    return made;
  };
  const sit = (bytes: Uint8Array, mime: string): Promise<Look | undefined> =>
    new Promise((resolve) => {
      child ??= start();
      const own = child;
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
      const gone = (code: number | null) => done(undefined, code === 137 ? 'too much memory' : `its process ended with ${code}`);
      const overdue = clock.after(limits.time_ms, () => {
        if (child === own) child = undefined;
        own.kill('SIGKILL');
        done(undefined, 'too slow');
      });
      own.on('message', hear);
      own.on('exit', gone);
      own.send(sitting, (error) => error && done(undefined, error.message));
    });

  return {
    look(bytes, mime) {
      const next = last.then(() => sit(bytes, mime));
      last = next.catch(() => {});
      return next;
    },
    async close() {
      await last;
      child?.kill('SIGKILL');
      child = undefined;
    },
  };
}
