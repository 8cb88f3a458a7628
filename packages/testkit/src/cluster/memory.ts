import { readFile } from 'node:fs/promises';
import WebSocket from 'ws';
import type { PartProcess } from './process.js';

/** What a process holds on to, just after a collection of all garbage. */
export interface Memory {
  /** Bytes of objects and buffers that JavaScript can reach. */
  readonly reachable: number;
  /** Bytes resident that are this process's own, without files: also what native code holds, and what nobody gave back. */
  readonly resident: number;
}

/** Settings of Node that {@link memoryOf} needs: the process answers questions on a free port of the loopback. */
export const measurable: readonly string[] = ['--inspect=127.0.0.1:0'];

/** Asks the process through its inspector. @throws when it was not started with {@link measurable} or does not answer */
export async function memoryOf(part: PartProcess): Promise<Memory> {
  const url = /Debugger listening on (ws:\S+)/.exec(part.log())?.[1];
  if (url === undefined) throw new Error(`${part.name} has no inspector`);
  const socket = new WebSocket(url);
  try {
    await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
    // Twice: what the first leaves to finalizers is gone after the second.
    for (const id of [1, 2]) await ask(socket, id, 'HeapProfiler.collectGarbage');
    const { result } = (await ask(socket, 3, 'Runtime.evaluate', {
      expression: '(({ heapUsed, external }) => heapUsed + external)(process.memoryUsage())',
      returnByValue: true,
    })) as { result: { value: number } };
    const status = await readFile(`/proc/${part.pid}/status`, 'utf8');
    return { reachable: result.value, resident: Number(/RssAnon:\s+(\d+) kB/.exec(status)?.[1]) * 1024 };
  } finally {
    socket.terminate();
  }
}

function ask(socket: WebSocket, id: number, method: string, params: object = {}): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const hear = (data: WebSocket.RawData) => {
      const answer = JSON.parse(String(data)) as { id?: number; result?: unknown; error?: { message: string } };
      if (answer.id !== id) return;
      socket.off('message', hear);
      if (answer.error) reject(new Error(`${method}: ${answer.error.message}`));
      else resolve(answer.result);
    };
    socket.on('message', hear).once('close', () => reject(new Error(`${method}: the inspector closed`)));
    socket.send(JSON.stringify({ id, method, params }));
  });
}
