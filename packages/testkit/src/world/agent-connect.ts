import type { Connect } from '@iris/agent-link';
import type { Wire } from '../wire.js';
import type { World } from './world.js';

/**
 * How an agent on the SDK reaches the edges of a world: `runAgent({ connect: agentConnect(world), clock: world.clock('agent'), … })`. Dials the edge
 * that `edge` names by its index, default the first one alive.
 */
export function agentConnect(world: World, edge?: () => number): Connect {
  return (_url, { token }, events) => {
    let wire: Wire | undefined;
    let over = false;
    const end = (code: number, reason: string) => {
      if (over) return;
      over = true;
      events.closed(code, reason);
    };
    const index = edge?.() ?? world.edges.findIndex(({ alive }) => alive);
    const dial = world.edges[index]?.links.dial('/agent', { token });
    if (dial === undefined) queueMicrotask(() => end(1006, 'no edge'));
    else
      void dial({
        message: (data) => {
          if (!over) events.message(typeof data === 'string' ? data : new TextDecoder().decode(data));
        },
        ping: (data) => wire?.pong(data),
        closed: end,
      }).then(
        (opened) => {
          wire = opened;
          if (over) opened.cut();
          else events.open();
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
}
