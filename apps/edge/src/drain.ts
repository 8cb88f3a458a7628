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
 * Close every socket within `within_ms`, in waves of chance order, so that the devices come back to the other edges spread
 * out. One that is owed an answer is passed over until it has it or the time is up. Agents are told first, so that they can open
 * their next link before this one goes.
 * @param options.service the service as a whole goes: devices are told `status restarting`, which apps show
 */
export async function drain(edge: EdgeContext, { within_ms, service }: { within_ms: number; service: boolean }): Promise<void> {
  edge.draining = true;
  if (service) tellRestarting(edge);
  for (const link of edge.links) link.socket.send(drainFrame(within_ms));

  const waiting = shuffle([...edge.connections.values()].filter(isOpen), () => edge.random.unit());
  const waves = Math.max(1, Math.floor((within_ms * spread) / wave_ms));
  const each = Math.ceil(waiting.length / waves);
  const begun = edge.clock.now();
  let owed: (DeviceConnection | AgentLink)[] = [];
  while (waiting.length > 0) {
    const wave = waiting.splice(0, each);
    for (const connection of wave) if (!closeUnlessOwed(edge, connection)) owed.push(connection);
    if (waiting.length > 0) await sleep(edge, wave_ms * (0.5 + edge.random.unit()));
    if (edge.clock.now() - begun > within_ms * spread) break;
  }
  owed.push(...waiting);
  while (owed.length > 0 && edge.clock.now() - begun < within_ms) {
    owed = owed.filter((connection) => !closeUnlessOwed(edge, connection));
    if (owed.length > 0) await sleep(edge, wave_ms);
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

const sleep = (edge: EdgeContext, ms: number): Promise<void> => new Promise((resolve) => void edge.clock.after(ms, resolve));

function shuffle<T>(items: T[], unit: () => number): T[] {
  for (let i = items.length - 1; i > 0; i--) {
    const j = Math.floor(unit() * (i + 1));
    [items[i], items[j]] = [items[j]!, items[i]!];
  }
  return items;
}
