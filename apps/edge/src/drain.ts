import { closeCodes } from '@iris/protocol';
import { drainFrame } from './agent/deliver.js';
import type { AgentLink } from './agent/link.js';
import type { DeviceConnection } from './connection.js';
import type { EdgeContext } from './context.js';
import { tellRestarting } from './deliver.js';

/** Milliseconds between two waves. */
const wave_ms = 100;
/** The last part of the time is for those who were still owed an answer at their turn. */
const spread = 0.8;

/**
 * Close every socket within `within_ms`, each at a moment of chance, in waves, so that the devices come back to the other edges spread
 * out. One that is owed an answer is passed over until it has it or the time is up. Agents are told first, so that they can open
 * their next link before this one goes.
 * @param options.service the service as a whole goes: devices are told `status restarting`, which apps show
 */
export async function drain(edge: EdgeContext, { within_ms, service }: { within_ms: number; service: boolean }): Promise<void> {
  edge.draining = true;
  if (service) tellRestarting(edge);
  for (const link of edge.links) link.socket.send(drainFrame(within_ms));

  const begun = edge.clock.now();
  let waiting = [...edge.connections.values()]
    .filter(isOpen)
    .map((connection) => ({ connection, at: edge.random.unit() * within_ms * spread }));
  while (waiting.length > 0) {
    const passed = edge.clock.now() - begun;
    if (passed >= within_ms) break;
    waiting = waiting.filter(({ connection, at }) => at > passed || !closeUnlessOwed(edge, connection));
    if (waiting.length > 0) await new Promise<void>((resolve) => void edge.clock.after(Math.min(wave_ms, within_ms - passed), resolve));
  }
  // What came meanwhile, and what time has run out for.
  for (const connection of [...edge.connections.values()]) if (isOpen(connection)) end(edge, connection);
}

const isOpen = (connection: DeviceConnection | AgentLink): boolean => connection.state.kind !== 'closed';

/** @returns whether it is closed now */
function closeUnlessOwed(edge: EdgeContext, connection: DeviceConnection | AgentLink): boolean {
  if (!isOpen(connection)) return true;
  if ((connection.in_flight?.size ?? 0) > 0) return false;
  end(edge, connection);
  return true;
}

function end(edge: EdgeContext, connection: DeviceConnection | AgentLink): void {
  edge.meters.closed.add(1, { code: closeCodes.restarting });
  connection.socket.close(closeCodes.restarting, 'this edge goes; connect again');
}
