import type { AgentId, ConnectionId, Cursor, DeviceCaps, DeviceId, RequestId, SessionId, TenantId } from '@iris/protocol';
import type { Feed, Group } from './feed.js';
import type { InFlight } from './forward.js';
import type { Pulls } from './local/media-pull.js';
import type { Uploads } from './local/uploads.js';
import type { Socket, SocketEvents } from './socket.js';
import type { Streams } from './streams.js';

/** What a device's connection is doing. Each state has only its own fields; the clocks are in `config.ts`. */
export type DeviceState = Greeting | Live | CatchingUp | Closed;

/** Before `hello.ack`. */
export interface Greeting {
  readonly kind: 'greeting';
  /** Tick at which it opened. */
  readonly since: number;
  /** The hello that is being answered. */
  hello?: {
    readonly id: RequestId | undefined;
    readonly device_id: DeviceId;
    readonly token: string;
    readonly caps: DeviceCaps;
  };
  /** What the device sent behind it, in order. */
  readonly waiting: { readonly data: Uint8Array; readonly binary: boolean }[];
  waiting_bytes: number;
}

/** A member of its feed's publish group; its position is the feed's. */
export interface Live {
  readonly kind: 'live';
  readonly member: Member;
}

/** Reads from the outbox at the socket's pace until it has what the feed has. */
export interface CatchingUp {
  readonly kind: 'catching_up';
  readonly member: Member;
  /** Everything up to here has been handed to the socket. */
  at: Cursor;
  /** Asked replays, first come first served; they go before what is above {@link at}. */
  readonly syncs: SyncJob[];
  /** The newest ephemeral per key, for when it has caught up. */
  held: Map<string, Held> | undefined;
  /** A page is on its way. */
  reading: boolean;
  /** Ticks at which reading failed or came to nothing; 0 when all is well. */
  stuck_since: number;
}

export interface Closed {
  readonly kind: 'closed';
}

export interface SyncJob {
  readonly id: RequestId | undefined;
  /** As asked; undefined until begun when the watermark was meant. */
  at: Cursor | undefined;
  truncated: boolean;
  /** Tick at which it is given up when no page comes. */
  deadline: number;
}

export interface Held {
  readonly type: string;
  readonly rev: number;
  readonly message_id: string | undefined;
  readonly body: Uint8Array;
}

/** What an edge knows of a device that has said hello, in whatever state its connection is. */
export interface Member {
  readonly feed: Feed;
  readonly device_id: DeviceId;
  readonly token_id: string;
  /** While it is live, it is one of these. */
  readonly group: Group;
  /** With cap `delta` or `reasoning`: what it has of running messages. */
  readonly streams: Streams | undefined;
  /** Head of the outbox when it registered: up to here it has things by `sync`, above live. */
  readonly head: Cursor;
  /** Known to have reached the device. */
  watermark: Cursor;
  /** What is going on that it was told of after `hello.ack`: `sync` does not repeat it. */
  readonly told: Told | undefined;
  /** Highest position that a ping has carried: no pong can confirm more. */
  pinged: Cursor;
  /** Pings without an answer, and clock milliseconds of the oldest; whether one was ever answered. */
  pings_out: number;
  pinged_at: number;
  answers_pings: boolean;
  /** The last answer took long: what is given out piles up on the way, where no buffer shows it. */
  slow: boolean;
  /** Whether it has been given everything from its watermark on. Until `sync` has closed the range before {@link head}, nothing above the watermark counts. */
  unbroken: boolean;
  /** The two buckets; see `rate-limit.ts`. */
  frames_full_at: number;
  sends_full_at: number;
  /** Frames refused by a rate, and frames that were none, since the tick beside them. */
  refused: number;
  refused_since: number;
  malformed: number;
  malformed_since: number;
  binary_told: boolean;
  /** Files on their way up, and down. */
  uploads: Uploads | undefined;
  pulls: Pulls | undefined;
}

export interface Told {
  readonly message_ids: ReadonlySet<string>;
  readonly picker_ids: ReadonlySet<string>;
  readonly busy: ReadonlySet<string>;
}

/** What {@link Forward} needs of whoever asks the session something: a device's connection or an agent's link. */
export interface Caller {
  readonly connection_id: ConnectionId;
  readonly peer: 'device' | 'agent';
  readonly tenant_id: TenantId;
  readonly device_id: DeviceId | undefined;
  readonly agent_id: AgentId | undefined;
  readonly epoch: number | undefined;
  /** The number of its last request. */
  asked: number;
  in_flight: Map<number, InFlight> | undefined;
  in_flight_bytes: number;
  /** Of those in flight, how many wait for a session instance. */
  unsent: number;
  /** Where those that were sent went. */
  instance: SessionId | undefined;
  /** The only instance that may be asked: of an agent's link, whose state is in that instance's memory. */
  readonly pinned: SessionId | undefined;
  /** The order of its last update: an agent's. */
  updated_at?: number;
  /** Closed: what it asked is still asked, and `gone` is said after that. */
  leaving: boolean;
}

/** What is done with a connection's events. One for all connections. */
export interface Handlers<C> {
  message(connection: C, data: Uint8Array, binary: boolean): void;
  pong(connection: C, data: Uint8Array): void;
  drained(connection: C): void;
  closed(connection: C): void;
}

/**
 * A device's socket. A class only so that fifty thousand idle connections share their four functions instead of having
 * closures of their own; everything is done by the modules that are given it.
 */
export class DeviceConnection implements Caller, SocketEvents {
  readonly peer = 'device';
  readonly agent_id = undefined;
  readonly epoch = undefined;
  readonly pinned = undefined;
  state: DeviceState;
  tenant_id = '' as TenantId;
  device_id: DeviceId | undefined = undefined;
  /** Tick of the last sign of life. */
  heard: number;
  asked = 0;
  in_flight: Map<number, InFlight> | undefined = undefined;
  in_flight_bytes = 0;
  unsent = 0;
  instance: SessionId | undefined = undefined;
  leaving = false;

  constructor(
    readonly connection_id: ConnectionId,
    readonly socket: Socket,
    readonly address: string,
    tick: number,
    private readonly handlers: Handlers<DeviceConnection>,
  ) {
    this.heard = tick;
    this.state = { kind: 'greeting', since: tick, waiting: [], waiting_bytes: 0 };
  }
  message(data: Uint8Array, binary: boolean): void {
    this.handlers.message(this, data, binary);
  }
  pong(data: Uint8Array): void {
    this.handlers.pong(this, data);
  }
  drained(): void {
    this.handlers.drained(this);
  }
  closed(): void {
    this.handlers.closed(this);
  }
}

/** The member behind a connection, once it has said hello and while it is open. */
export const memberOf = (connection: DeviceConnection): Member | undefined =>
  connection.state.kind === 'live' || connection.state.kind === 'catching_up' ? connection.state.member : undefined;

/** Up to where everything has been handed to the socket. */
export const positionOf = (state: Live | CatchingUp): Cursor => (state.kind === 'live' ? state.member.feed.last : state.at);
