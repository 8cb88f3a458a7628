import { type Clock, systemClock } from '@iris/runtime';
import type { Launched } from './launch.js';
import { pause } from './time.js';

/** One running process of a part. */
export interface Running extends Launched {
  /** Where it is reached. */
  readonly port: number;
}

export interface Part {
  readonly part: string;
  readonly index: number;
  /** Resolves when it does its work. Called again after each death. */
  start(): Promise<Running>;
}

export interface ProcessEntry {
  readonly part: string;
  readonly index: number;
  readonly pid: number;
  readonly port: number;
}

export interface Supervisor {
  /** Start these side by side. @throws what the first that failed said */
  start(...parts: Part[]): Promise<void>;
  /** What runs now. */
  list(): ProcessEntry[];
  /** Groups backwards, the parts of one group side by side. */
  stop(): Promise<void>;
}

/** How long after its death a part is started again. */
export const restart_ms = 1_000;

/**
 * Keeps parts running: one that dies is started again after a second, for as long as it takes.
 * @param options.changed called after each change of {@link Supervisor.list}
 */
export function supervise(options: { restart: boolean; say: (line: string) => void; changed: () => void; clock?: Clock }): Supervisor {
  const { restart, say, changed, clock = systemClock } = options;
  const groups: Part[][] = [];
  const running = new Map<Part, Running>();
  let stopping = false;

  const watch = (part: Part, one: Running): void => {
    running.set(part, one);
    changed();
    void one.ended.then(async () => {
      if (running.get(part) === one) running.delete(part);
      if (stopping) return;
      changed();
      say(`${label(part)} (pid ${one.pid}) died${restart ? '; starting it again' : ''}`);
      if (restart) await again(part);
    });
  };

  const again = async (part: Part): Promise<void> => {
    while (!stopping) {
      await pause(clock, restart_ms);
      if (stopping) return;
      try {
        const one = await part.start();
        if (stopping) return void (await one.stop());
        watch(part, one);
        return say(`${label(part)} runs again (pid ${one.pid})`);
      } catch (error) {
        say(`${label(part)} could not be started: ${(error as Error).message.split('\n')[0]}`);
      }
    }
  };

  return {
    async start(...parts) {
      groups.push(parts);
      const outcomes = await Promise.allSettled(parts.map(async (part) => watch(part, await part.start())));
      const failed = outcomes.find((outcome) => outcome.status === 'rejected');
      if (failed !== undefined) throw failed.reason;
    },
    list: () =>
      groups
        .flat()
        .flatMap((part) =>
          running.has(part) ? [{ part: part.part, index: part.index, pid: running.get(part)!.pid, port: running.get(part)!.port }] : [],
        ),
    async stop() {
      stopping = true;
      for (const group of groups.splice(0).reverse()) await Promise.all(group.map((part) => running.get(part)?.stop()));
    },
  };
}

const label = ({ part, index }: Part): string => `${part} ${index}`;
