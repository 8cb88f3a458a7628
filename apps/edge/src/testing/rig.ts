import { memoryHub } from '@iris/bus';
import { memoryMedia } from '@iris/media';
import { memoryOutbox } from '@iris/outbox';
import type { ConnectionId } from '@iris/protocol';
import { type Log, silentLog } from '@iris/runtime';
import { manualClock, recordingMeter, seededRandom } from '@iris/runtime/testing';
import { defaultEdgeConfig, type EdgeConfig } from '../config.js';
import { createEdge } from '../edge.js';
import { type FakeSocket, fakeSockets } from './fake-sockets.js';
import { agentToken, deviceToken, edgeId, scriptedSession, tenant } from './scripted-session.js';

/** An edge on memory adapters and a clock that stands still, with session instances that a test writes the lines of. */
export async function rig(set: Partial<EdgeConfig> = {}, log: Log = silentLog) {
  const clock = manualClock();
  const hub = memoryHub({ clock, poison: true });
  const outbox = memoryOutbox({ clock });
  const media = memoryMedia({ clock });
  const meter = recordingMeter();
  const sockets = fakeSockets();
  const edgeBus = hub.connect('edge');
  let made = 0;
  const edge = createEdge(
    {
      bus: edgeBus,
      outbox: outbox.connect(),
      media,
      clock,
      log,
      meter,
      edge_id: edgeId,
      groups: sockets,
      newConnectionId: () => `c${++made}` as ConnectionId,
      random: seededRandom(1),
    },
    { ...defaultEdgeConfig, ...set },
  );
  await edge.start();
  await outbox.seed(tenant, 0, 1_000_000);
  const session = (session_id = 's1') => scriptedSession({ bus: hub.connect(session_id), outbox, clock, session_id });
  const first = session();
  await clock.settle();

  const connect = (path: '/ws' | '/agent' = '/ws', address = '10.0.0.1', token?: string): FakeSocket => {
    const socket = sockets.open();
    socket.bind(edge.accept(socket, { path, address, ...(token === undefined ? {} : { token }) }));
    return socket;
  };
  const hello = (device_id = 'd1', more: Record<string, unknown> = {}) => ({
    v: 1,
    id: 'h',
    type: 'hello',
    payload: { token: deviceToken, device_id, ...more },
  });
  return {
    clock,
    hub,
    outbox,
    media,
    meter,
    sockets,
    edgeBus,
    edge,
    session: first,
    another: session,
    connect,
    hello,
    /** A device that has said hello. */
    async device(device_id = 'd1', more: Record<string, unknown> = {}): Promise<FakeSocket> {
      const socket = connect();
      socket.say(hello(device_id, more));
      await clock.settle();
      return socket;
    },
    /** An agent that has said hello. */
    async agent(): Promise<FakeSocket> {
      const socket = connect('/agent', '10.0.0.2', agentToken);
      socket.say({ v: 1, type: 'hello', payload: { agent: 'demo', install_id: 'i1', boot_id: 'b1', last_seq: 0 } });
      await clock.settle();
      return socket;
    },
    /** Types of what a socket has heard from `from` on. */
    types: (socket: FakeSocket, from = 0): string[] => socket.heard.slice(from).map((frame) => frame.type),
  };
}
