import { systemClock } from '@iris/runtime';
import { type Look, type LookLimits, look } from './look.js';

/** What the studio asks its process, and what that answers. */
export interface Sitting {
  readonly n: number;
  readonly bytes: Uint8Array;
  readonly mime: string;
  readonly limits: LookLimits;
}
export type Seen = { readonly n: number; readonly look: Look } | { readonly n: number; readonly fault: string };

const memoryCheck_ms = 20;
const memory_bytes = Number(process.argv[2]);

/** At once: an exit in good order waits until whatever is being decoded has come to its end. */
const die = () => process.kill(process.pid, 'SIGKILL');
// What decodes is not JavaScript, and no limit of V8 counts what it takes.
systemClock.every(memoryCheck_ms, () => {
  if (process.memoryUsage.rss() > memory_bytes) die();
});
process.on('disconnect', die);
// Its worker may have gone while this was being loaded, and that is said only once.
if (!process.connected) die();
process.on('message', ({ n, bytes, mime, limits }: Sitting) => {
  look(bytes, mime, limits).then(
    (seen) => process.send!({ n, look: seen } satisfies Seen),
    (error: unknown) => process.send!({ n, fault: error instanceof Error ? error.message : String(error) } satisfies Seen),
  );
});
