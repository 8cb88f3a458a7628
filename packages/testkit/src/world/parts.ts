import type { Opening, Socket, SocketEvents, SocketGroups } from '@iris/edge';
import type { EdgeId, SessionId } from '@iris/protocol';
import type { Log } from '@iris/runtime';
import type { Node } from './backbone.js';

/** What the world needs of a running edge. */
export interface EdgePart {
  accept(socket: Socket, opening: Opening): SocketEvents;
  stop(): Promise<void>;
}
/** …and of a session instance. */
export interface SessionPart {
  stop(): Promise<void>;
}
export interface EdgeStart {
  readonly edge_id: EdgeId;
  readonly node: Node;
  readonly groups: SocketGroups;
  readonly log: Log;
  readonly config: Record<string, unknown>;
}
export interface SessionStart {
  readonly session_id: SessionId;
  readonly node: Node;
  readonly log: Log;
  readonly config: Record<string, unknown>;
}
