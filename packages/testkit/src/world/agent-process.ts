import type { Connect } from '@iris/agent-link';
import type { ProcessClock } from '../timeline.js';
import type { Wire } from '../wire.js';
import type { World } from './world.js';

/** A process with an agent on the SDK in it: `runAgent({ connect, clock, … })`. */
export interface AgentProcess {
  readonly clock: ProcessClock;
  readonly connect: Connect;
  /** As SIGKILL: its timers never run, its sockets are gone, and it hears nothing more. */
  kill(): void;
}

/** @param edge the index of the edge that it dials; default: the first one alive */
export function agentProcess(world: World, name: string, edge?: () => number): AgentProcess {
  const clock = world.clock(name);
  const wires = new Set<Wire>();
  const connect: Connect = (_url, { token }, events) => {
    let wire: Wire | undefined;
    let over = false;
    const end = (code: number, reason: string) => {
      if (wire) wires.delete(wire);
      if (over || !clock.alive) return;
      over = true;
      events.closed(code, reason);
    };
    const index = edge?.() ?? world.edges.findIndex(({ alive }) => alive);
    const dial = world.edges[index]?.links.dial('/agent', { token });
    if (dial === undefined) clock.soon(() => end(1006, 'no edge'));
    else
      void dial({
        message: (data) => {
          if (!over && clock.alive) events.message(typeof data === 'string' ? data : new TextDecoder().decode(data));
        },
        ping: (data) => wire?.pong(data),
        closed: end,
      }).then(
        (opened) => {
          if (over || !clock.alive) return opened.cut();
          wire = opened;
          wires.add(opened);
          events.open();
        },
        () => end(1006, 'refused'),
      );
    return {
      send: (text) => wire?.send(text, 'text'),
      close(code, reason) {
        over = true;
        wire?.close(code, reason);
      },
      terminate() {
        over = true;
        wire?.cut();
      },
      buffered: () => 0,
    };
  };
  return {
    clock,
    connect,
    kill() {
      clock.kill();
      for (const wire of [...wires]) wire.cut();
      wires.clear();
    },
  };
}
