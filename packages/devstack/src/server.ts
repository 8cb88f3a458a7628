import type { Clock } from '@iris/runtime';
import { findProgram } from './commands.js';
import { type Launched, type LaunchOptions, launch } from './launch.js';
import { signalPid } from './pids.js';
import { isFree } from './ports.js';

/** A server that is not ours, as a process of its own. */
export interface Server extends Launched {
  readonly name: string;
  readonly port: number;
  /** Where clients connect, with the credentials. */
  readonly url: string;
  /** For tests of faults: nothing is tidied up. */
  kill(signal: NodeJS.Signals): void;
}

/** @throws with the last lines of its log when it ends or does not get ready */
export async function startServer(
  options: Omit<LaunchOptions, 'command' | 'clock' | 'hold_stdin'> & {
    readonly program: string;
    readonly args: readonly string[];
    readonly port: number;
    readonly url: string;
    readonly clock?: Clock | undefined;
  },
): Promise<Server> {
  const { name, port, url, program, args, stop_signal } = options;
  // Whoever has it would answer in the server's place.
  if (!(await isFree(port))) throw new Error(`${name}: port ${port} is taken`);
  const launched = await launch({ ...options, command: endingWithUs([program, ...args], stop_signal) });
  return { ...launched, name, port, url, kill: (signal) => signalPid(launched.pid, signal) };
}

/**
 * On Linux the kernel can end a child whose parent was killed. Elsewhere the next start does it. A change of user forgets
 * that wish, so it is said to the same program that makes the change.
 */
function endingWithUs(command: readonly string[], signal: NodeJS.Signals): readonly string[] {
  const setpriv = process.platform === 'linux' ? findProgram('setpriv') : undefined;
  if (setpriv === undefined) return command;
  const wish = [setpriv, '--pdeathsig', signal.slice(3)];
  return command[0] === setpriv ? [...wish, ...command.slice(1)] : [...wish, '--', ...command];
}
