import { fileURLToPath } from 'node:url';
import type { Clock } from '@iris/runtime';
import { launch } from './launch.js';
import { loopback } from './ports.js';
import type { Running } from './supervise.js';

/** Loaded before the program: ends it in good order when the process that started it is gone. Compiled, also where we are not. */
const watcher = fileURLToPath(new URL('../dist/parent-watch.js', import.meta.url));

/**
 * A Node program of ours as a process of its own, with its log in `run_dir`.
 * @param options.ready the port and path that answer 200 when it does its work
 * @throws with the last lines of its log when it ends or does not get ready
 */
export async function startNodePart(options: {
  readonly name: string;
  readonly main: string;
  readonly args?: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly port: number;
  readonly ready: { readonly port: number; readonly path: string };
  readonly run_dir: string;
  readonly stop_ms?: number;
  readonly clock?: Clock;
}): Promise<Running> {
  const { name, env, port, ready, run_dir, clock, stop_ms = 15_000 } = options;
  const launched = await launch({
    name,
    command: [process.execPath, '--import', watcher, options.main, ...(options.args ?? [])],
    env,
    hold_stdin: true,
    run_dir,
    stop_signal: 'SIGTERM',
    stop_ms,
    ready_ms: 30_000,
    ready: () => answers(ready),
    clock,
  });
  return { ...launched, port };
}

async function answers({ port, path }: { port: number; path: string }): Promise<boolean> {
  const response = await fetch(`http://${loopback}:${port}${path}`, { signal: AbortSignal.timeout(3_000) });
  await response.arrayBuffer();
  return response.ok;
}
