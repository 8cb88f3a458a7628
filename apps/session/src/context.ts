import type {
  AgentId,
  AgentUpFrame,
  ConnectionId,
  Cursor,
  DeviceId,
  DownFrame,
  EdgeId,
  Lane,
  MessageId,
  TenantId,
  UpFrameOf,
  UpType,
} from '@iris/protocol';
import type { Clock, Log } from '@iris/runtime';
import type { Store } from '@iris/store';
import type { AgentLink } from './agent/link.js';
import type { Links } from './agent/links.js';
import type { Rooms } from './agent/room.js';
import type { Silence } from './agent/silence.js';
import type { Turns } from './agent/turns.js';
import type { SessionConfig } from './config.js';
import type { Directory } from './directory.js';
import type { Effects, Emitter, Origin } from './emission.js';
import type { MediaReady } from './media/ready.js';
import type { Presence } from './presence.js';
import type { Rates } from './rates.js';
import type { Reads } from './reads.js';

/** What handlers work with. */
export interface Context {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly config: SessionConfig;
  readonly directory: Directory;
  readonly emitter: Emitter;
  readonly presence: Presence;
  readonly rooms: Rooms;
  readonly links: Links;
  readonly turns: Turns;
  readonly silence: Silence;
  readonly reads: Reads;
  readonly mediaReady: MediaReady;
  readonly rates: Rates;
}

/** What answers a request. `frame`: this one. `placed`: the durable frame at this cursor. `body`: bytes for the edge itself. */
export type Answer =
  | { readonly kind: 'done' }
  | { readonly kind: 'frame'; readonly frame: DownFrame }
  | { readonly kind: 'placed'; readonly cursor: Cursor; readonly fresh: boolean; readonly body: Uint8Array }
  /** Bytes for the edge itself: a hello that is refused. */
  | { readonly kind: 'body'; readonly body: Uint8Array }
  /** The emission that made it has said it. */
  | { readonly kind: 'said'; readonly body: Uint8Array };

export const done: Answer = { kind: 'done' };
export const ok: Answer = { kind: 'frame', frame: { type: 'ack', payload: { ok: true } } };

interface Asked {
  readonly tenant_id: TenantId;
  readonly edge_id: EdgeId;
  readonly connection_id: ConnectionId;
  readonly origin: Origin;
  /** The same on every retry, whichever instance gets it. */
  readonly key: string;
  /** It has its place in the tenant's order: the connection's next request may begin, if it may run beside this one. */
  entered(): void;
}

export interface DeviceRequest<T extends UpType = UpType> extends Asked {
  /** For `hello`, the one in the frame. */
  readonly device_id: DeviceId;
  /** Milliseconds on the clock; the edge has answered for us by then. */
  readonly deadline: number;
  readonly frame: UpFrameOf<T>;
}
export type DeviceHandler<T extends UpType> = (request: DeviceRequest<T>, context: Context) => Promise<Answer>;

export interface AgentRequest extends Asked {
  readonly agent_id: AgentId;
  readonly link: AgentLink;
  readonly frame: AgentUpFrame;
  /** Of the messages that the frame names, those that were deleted: see {@link aboutOf}. */
  readonly deleted: ReadonlySet<MessageId>;
}

/** What an agent's frame does, in the tenant's order. */
export interface AgentEffects extends Effects {
  /** Lanes in which a turn may start now. */
  readonly advance?: readonly Lane[];
  /** Answers the agent's request. */
  readonly reply?: DownFrame;
}
