/**
 * What crosses the bus between edge and session: many records in one message, each a few header bytes and a body that
 * nobody parses on the way. See ARCHITECTURE.md, "The two hops". All numbers in records are integers from 0 to 2^53 - 1.
 */
import type { AgentId, ConnectionId, Cursor, DeviceId, EdgeId, SessionId, TenantId } from '@iris/protocol';

/** An instance of the session service says that it serves. Sent every {@link announceEvery_ms} and once when it leaves. */
export interface Announcement {
  readonly session_id: SessionId;
  readonly state: 'serving' | 'leaving';
}
export const announceEvery_ms = 1_000;
/** An instance that has not announced itself for this long is taken for dead. */
export const announceDead_ms = 3_500;

/** Heard by every edge and session instance. */
export type Control =
  /** Drop what you cached of the tenant: something changed it elsewhere. */
  | { readonly kind: 'changed'; readonly tenant_id: TenantId; readonly what: 'tenant' | 'channels' | 'agents' | 'tokens' }
  /** Who serves which channel, or what an agent's backend is, was changed: the same, and what waits is looked at again. */
  | { readonly kind: 'rerouted'; readonly tenant_id: TenantId }
  /** Close these live connections with 4403; absent ids mean every one of the tenant. */
  | { readonly kind: 'revoked'; readonly tenant_id: TenantId; readonly token_id?: string; readonly device_id?: DeviceId }
  /** An operator's word that the service as a whole goes down: tell devices `status restarting`. */
  | { readonly kind: 'restarting' };

/** A frame or an event of one connection, on its way to a session instance. */
export type ToSession =
  | {
      /**
       * A decoded and checked frame that wants an effect or an answer.
       * Sent again, with the same `n`, until answered; `${connection_id}:${n}` is its idempotency key.
       */
      readonly kind: 'request';
      readonly tenant_id: TenantId;
      readonly edge_id: EdgeId;
      readonly connection_id: ConnectionId;
      /** Rises by one per request of the connection; the session handles them in this order. */
      readonly n: number;
      /** The lowest `n` not yet answered when this was sent: answers below it may be forgotten, and nothing below it will come. */
      readonly base: number;
      readonly peer: 'device' | 'agent';
      /** Known after `hello`. */
      readonly device_id?: DeviceId;
      readonly agent_id?: AgentId;
      /** Of the agent's link; a request of an older epoch is refused. */
      readonly epoch?: number;
      /**
       * The frame's type. {@link passedOver} when an agent's frame had a `seq` but cannot be handled (unknown type, bad payload): the
       * edge has told the agent, and the session counts the `seq` as processed, so that it is acked and not sent for ever.
       */
      readonly type: string;
      /** Address of the peer, only with `hello`. */
      readonly address?: string;
      /** The frame's JSON text as UTF-8, cleaned; for `hello` with the token in it. */
      readonly body: Uint8Array;
    }
  | {
      /**
       * An ephemeral frame of an agent (whole text so far, already paced; or typing, tool.progress). Sent once, may be lost.
       * Belongs after the connection's request `after_n`; if that has not been handled, it waits for it.
       * `message.update`: `{type, turn_id, payload: {message_id, text, reasoning?}}`, made by the edge of whatever the agent sent
       * (`message.update`, `message.delta`, `reasoning.delta`). `typing`, `typing.stop`, `tool.progress`: the agent's frame as it came.
       */
      readonly kind: 'update';
      readonly tenant_id: TenantId;
      readonly edge_id: EdgeId;
      readonly connection_id: ConnectionId;
      readonly after_n: number;
      /**
       * When the edge took it (ms since 1970), and more than that of the update before it: of those about one thing, an older one that comes late is
       * not shown, also when a session instance that stood still says it after another one said what is newer.
       */
      readonly order: number;
      readonly agent_id: AgentId;
      readonly epoch: number;
      readonly type: string;
      readonly body: Uint8Array;
    }
  | {
      /** The connection is closed. Sent once, may be lost: leases and the sweep notice as well. */
      readonly kind: 'gone';
      readonly tenant_id: TenantId;
      readonly edge_id: EdgeId;
      readonly connection_id: ConnectionId;
      readonly peer: 'device' | 'agent';
      readonly device_id?: DeviceId;
      readonly agent_id?: AgentId;
      readonly epoch?: number;
      readonly body: Uint8Array;
    }
  | {
      /** The edge still holds this agent's link. Said every {@link heldEvery_ms}, to the tenant's instance; may be lost. */
      readonly kind: 'held';
      readonly tenant_id: TenantId;
      readonly edge_id: EdgeId;
      readonly connection_id: ConnectionId;
      readonly agent_id: AgentId;
      readonly epoch: number;
      /** Empty. */
      readonly body: Uint8Array;
    };

/** See {@link ToSession} `type`; its body is the frame's JSON text, whatever it says. */
export const passedOver = 'passed_over';

/**
 * See {@link ToSession} `type`: nobody's connection, but an HTTP request that answers a picker from its notification. Its body is `{token, value}`; it
 * is answered by a frame, `ack` or `error`.
 */
export const pushAnswer = 'push.answer';

/** How often an edge says which agent links it holds. */
export const heldEvery_ms = 3_000;

export type ToEdge =
  | {
      /** The answer to a request: a `cursor`, a non-empty body, both, or neither (nothing to say, but done). */
      readonly kind: 'answer';
      readonly connection_id: ConnectionId;
      readonly n: number;
      /**
       * The answer is the durable frame at this cursor, which comes in its place in the order. With a body (the request was asked
       * again): when the connection is past the cursor already, the frame has gone by without its `id`, and the body answers.
       */
      readonly cursor?: Cursor;
      /** The frame that answers, whole, without `id`. For `hello`: JSON of {@link HelloAnswer} or {@link AgentHelloAnswer}. */
      readonly body: Uint8Array;
    }
  | {
      /** A durable frame of the tenant, for every one of its connections. */
      readonly kind: 'durable';
      readonly tenant_id: TenantId;
      readonly cursor: Cursor;
      /**
       * Cursor before this one in the tenant's order. Usually `cursor - 1`; less after the sequence was seeded anew, so
       * that the jump is not taken for a loss.
       */
      readonly previous: Cursor;
      readonly type: string;
      /** The message that it is about; or, of `tool.end` and `agent.idle`, what is over with it. */
      readonly message_id?: string;
      /** The connection and request that caused it: it gets the frame with its `id`. */
      readonly origin?: { readonly connection_id: ConnectionId; readonly n: number };
      /** This device does not get it (its own read receipt). */
      readonly except_device_id?: DeviceId;
      readonly push: boolean;
      readonly body: Uint8Array;
    }
  | {
      /** A live-only frame of the tenant. */
      readonly kind: 'ephemeral';
      readonly tenant_id: TenantId;
      /** The tenant's head when it was made: a connection that has not got so far must not see it yet. */
      readonly after: Cursor;
      /** Coalescing key: the newest replaces the one waiting; empty for `typing` and the like. */
      readonly key: string;
      /** Rises per key: what is not newer than what was seen is dropped. */
      readonly rev: number;
      readonly type: string;
      /** What it is about: a message, a tool, a turn. Not to be shown once a durable frame of an ending type has named it. */
      readonly message_id?: string;
      /** Only this connection, if still there (`read.receipt` to the sender). */
      readonly to?: ConnectionId;
      readonly body: Uint8Array;
    }
  | {
      readonly kind: 'close';
      readonly connection_id: ConnectionId;
      readonly code: number;
      readonly reason: string;
      readonly body: Uint8Array;
    }
  | {
      /** A frame for an agent's link, whole and ready. */
      readonly kind: 'agent';
      readonly connection_id: ConnectionId;
      /**
       * Of a durable frame. The edge passes it on only when it is the next one of the link (see {@link AgentHelloAnswer.sent_seq})
       * and drops any other: one before it was lost, and the session sends again, in order, what the agent has not acked.
       */
      readonly seq?: number;
      readonly body: Uint8Array;
    };

/** What a session answers to a device's `hello`; the edge then goes live. */
export interface HelloAnswer {
  readonly tenant_id: TenantId;
  readonly token_id: string;
  /** `{close: code}` instead of all else: refused. */
  readonly refused?: { readonly code: string; readonly message: string; readonly close?: number; readonly retry_after_ms?: number };
  /** `hello.ack`'s payload but for `sync_cursor`, which the edge knows from `watermark`. */
  readonly ack: Record<string, unknown>;
  /** Head of the outbox at the instant of registration: the connection has everything up to here by `sync`, all above live. */
  readonly head: Cursor;
  readonly watermark: Cursor;
  /** Frames that follow `hello.ack` and `status`: what is going on now, and receipts kept for this device. */
  readonly frames: readonly string[];
  /**
   * Of the texts among {@link frames}: under which key their live frames come, and the `rev` that made them what they are. One below it is
   * on its way still, and older than what the device is told.
   */
  readonly revs?: readonly (readonly [key: string, rev: number])[];
  readonly quotas: {
    readonly frames_per_second: number;
    readonly frames_burst: number;
    readonly sends_per_second: number;
    readonly sends_burst: number;
  };
}

/** What a session answers to an agent's `hello`. */
export interface AgentHelloAnswer {
  readonly tenant_id: TenantId;
  readonly token_id: string;
  readonly agent_id: AgentId;
  readonly epoch: number;
  readonly refused?: { readonly code: string; readonly message: string; readonly close?: number };
  /** `hello.ack` as text, then every unacked durable frame, ready to send in this order. */
  readonly frames: readonly string[];
  /** The highest `seq` that the agent has or that is among {@link frames}: the next `agent` record with a `seq` has one more. */
  readonly sent_seq: number;
}

export { batchBytes, pack, packBatches, unpack } from './hop-codec.js';
