import type { Bus } from '@iris/bus';
import type { MediaStore } from '@iris/media';
import type { Outbox } from '@iris/outbox';
import type { ConnectionId, EdgeId, TenantId } from '@iris/protocol';
import type { Clock, Counter, Histogram, Log, Meter, Random } from '@iris/runtime';
import type { Admission } from './admission.js';
import type { AgentLink } from './agent/link.js';
import type { EdgeConfig } from './config.js';
import type { DeviceConnection } from './connection.js';
import type { Feed } from './feed.js';
import type { Forward } from './forward.js';
import type { HttpExchange } from './http-exchange.js';
import type { Slabs } from './local/slabs.js';
import type { Asker } from './media-ask.js';
import type { MediaClaim } from './media-link.js';
import type { Pages } from './pages.js';
import type { Answering } from './push-answer.js';
import type { Addresses } from './rate-limit.js';
import type { SocketGroups } from './socket.js';

/** What an edge is given. */
export interface EdgeDeps {
  readonly bus: Bus;
  readonly outbox: Outbox;
  /** The bytes of files. */
  readonly media: MediaStore;
  readonly clock: Clock;
  readonly log: Log;
  readonly meter: Meter;
  readonly edge_id: EdgeId;
  readonly groups: SocketGroups;
  readonly newConnectionId: () => ConnectionId;
  /** For jitter. Default: unpredictable. */
  readonly random?: Random;
}

/** All that the edge's modules share. Made once, by `createEdge`. */
export interface EdgeContext {
  readonly edge_id: EdgeId;
  readonly clock: Clock;
  readonly log: Log;
  readonly random: Random;
  readonly outbox: Outbox;
  readonly media: MediaStore;
  readonly slabs: Slabs;
  readonly newConnectionId: () => ConnectionId;
  readonly groups: SocketGroups;
  readonly config: EdgeConfig;
  readonly meters: EdgeMeters;
  /** See `ticks.ts`. */
  readonly time: { tick: number };
  readonly forward: Forward;
  readonly pages: Pages;
  readonly addresses: Addresses;
  readonly admission: { readonly device: Admission; readonly agent: Admission };
  /** Every connection whose answers may still come, by id; closed ones as long as they wait for some. */
  readonly connections: Map<ConnectionId, DeviceConnection | AgentLink>;
  /** Questions of the edge's own that have no answer yet. */
  readonly askers: Map<ConnectionId, Asker>;
  /** HTTP requests that wait for a session's word. */
  readonly answering: Map<ConnectionId, Answering>;
  readonly feeds: Map<TenantId, Feed>;
  /** Feeds that are believed to be behind; looked at each tick. */
  readonly seeking: Set<Feed>;
  /** Connections that could not read or came to nothing; tried again each tick. */
  readonly stuck: Set<DeviceConnection>;
  /** Connections whose watermark is to be written. */
  readonly confirmed: Set<DeviceConnection>;
  /** Open connections by the tick of their round in which they are pinged. */
  readonly rounds: readonly Set<DeviceConnection | AgentLink>[];
  /** Open connections before hello, oldest first. */
  readonly greeting: Set<DeviceConnection | AgentLink>;
  /** Agents' links past hello. */
  readonly links: Set<AgentLink>;
  /** Whose hello or answer is being tried at their address's cost, and whether that was taken from the bucket of all edges too. */
  readonly trying: Map<object, { readonly address: string; everywhere: boolean }>;
  /** Tokens that were good lately, hashed: their holders are not locked out by what others at their address try. */
  readonly good_tokens: Set<string>;
  /** Revocations of the last seconds, for those whose hello was being answered meanwhile. */
  readonly revoked: { readonly tenant_id: TenantId; readonly token_id?: string; readonly device_id?: string; readonly tick: number }[];
  /** Send buckets of devices that are gone for a moment, so that a new connection is no new bucket. */
  readonly left_buckets: Map<string, number>;
  /** Requests for files that are being answered, and the links that they follow. */
  readonly following: Map<HttpExchange, MediaClaim>;
  /** Unregistrations under way. */
  readonly goodbyes: Set<Promise<void>>;
  draining: boolean;
}

export interface EdgeMeters {
  readonly frames_in: Counter;
  readonly frames_out: Counter;
  readonly errors: Counter;
  readonly closed: Counter;
  readonly limited: Counter;
  readonly gaps: Counter;
  readonly resends: Counter;
  readonly request_seconds: Histogram;
  readonly media_bytes: Counter;
}
