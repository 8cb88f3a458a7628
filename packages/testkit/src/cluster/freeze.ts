import { readdirSync, readFileSync } from 'node:fs';

/**
 * SIGSTOP, and only then on: a signal reaches the threads of a process one after another, and what is still running answers once more. Where there
 * is no `/proc` it is sent and taken at its word. Nothing when the process is gone.
 */
export function freezeProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGSTOP');
  } catch {
    return;
  }
  const give_up = Date.now() + 5_000;
  while (!stopped(pid) && Date.now() < give_up);
}

function stopped(pid: number): boolean {
  try {
    return readdirSync(`/proc/${pid}/task`).every((thread) => {
      const stat = readFileSync(`/proc/${pid}/task/${thread}/stat`, 'latin1');
      // The name before it, in brackets, may hold anything.
      return 'TtZX'.includes(stat.charAt(stat.lastIndexOf(')') + 2));
    });
  } catch {
    return true;
  }
}
