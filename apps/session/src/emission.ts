import type { Registered } from '@iris/outbox';
import type { AgentId, ConnectionId, Cursor, DeviceId, DownFrame, DurableFrame, EdgeId, MessageId, TenantId } from '@iris/protocol';
import type { AgentFrameRow, MessageRow, NewTurn } from '@iris/store';

/** The request that asks, and where its answer goes. */
export interface Origin {
  readonly edge_id: EdgeId;
  readonly connection_id: ConnectionId;
  readonly n: number;
}

/** A durable frame on its way into the outbox. */
export interface OutFrame extends DurableFrame {
  /** It is the answer to this request. */
  readonly origin?: Origin;
  /** The message whose place its cursor is. */
  readonly places?: MessageId;
}

/** A live-only frame. */
export interface LiveFrame {
  readonly frame: DownFrame;
  /** The newest of a key replaces those waiting; empty: every one counts. */
  readonly key: string;
  /** Rises per key. */
  readonly rev: number;
  /** What it is about; nothing is shown of it once its end went out. */
  readonly about?: string;
  readonly to?: { readonly edge_id: EdgeId; readonly connection_id: ConnectionId };
}

/** All that goes out because of one step in the store. */
export interface Effects {
  readonly frames?: readonly OutFrame[];
  /** What is going on: put before the append, so that who registers after it never sees less than was appended. */
  readonly values?: Readonly<Record<string, string | null>>;
  /** Entries that go before the append. */
  readonly forget?: readonly ({ readonly message_ids: readonly MessageId[] } | { readonly lane: string })[];
  readonly before?: readonly LiveFrame[];
  readonly live?: readonly LiveFrame[];
  /** Frames for agents' links, stored already. */
  readonly agent?: readonly { readonly agent_id: AgentId; readonly rows: readonly AgentFrameRow[] }[];
  readonly close?: readonly {
    readonly edge_id: EdgeId;
    readonly connection_id: ConnectionId;
    readonly code: number;
    readonly reason: string;
  }[];
  /** Answers that must be with the edge before anything that comes behind this in the tenant's order. */
  readonly answer?: { readonly to: Origin; readonly cursor?: Cursor; readonly body: Uint8Array };
  /** Runs in memory, at once when the store has said yes: what the next step in the tenant's order must already know. */
  readonly know?: () => void;
  /**
   * Once appended, and before any of it is published: what the answer says is done. A retry after a crash in front of it finds it undone, and
   * does it with the same keys; one after a crash behind it needs to be told by `values` that it is done.
   */
  readonly settle?: () => Promise<void>;
  /**
   * Once appended and published, still in the tenant's order. What must not be true in the store before devices can know it: until it has
   * run, the work counts as undone there, and whoever finds it does it again with the same keys.
   */
  readonly after?: () => Promise<void>;
  /** Values that go once everything has run. */
  readonly drop?: readonly string[];
}

/**
 * One thing that happens in a tenant. Emissions of a tenant take effect in the order they were made, each in the steps store →
 * outbox → publish. Every step may run again after a failure, so each must be idempotent.
 */
export type Emission = {
  readonly tenant_id: TenantId;
  /** Milliseconds on the clock after which its step in the store is not begun any more; absent: it is tried until it works. */
  readonly deadline?: number;
} & (
  | {
      /** A message, committed together with those of all other tenants. */
      readonly kind: 'message';
      readonly row: { readonly message: MessageRow; readonly turn?: NewTurn };
      readonly effects: (stored: StoredMessage) => Effects;
    }
  | {
      readonly kind: 'change';
      /** `fresh`: not before everything ahead of it is appended. `alone`: nor anything behind it before it is. */
      readonly place?: 'fresh' | 'alone';
      /** Messages that must not have been deleted for `run` to say anything of them: asked in one question for all that wait together. */
      readonly about?: readonly MessageId[];
      /** @param deleted those of `about` that were */
      readonly run: (deleted: ReadonlySet<MessageId>) => Promise<Effects>;
    }
  | {
      /** A device's registration, with nothing of the tenant appended between it and what `effects` reads. */
      readonly kind: 'greeting';
      readonly device: {
        readonly device_id: DeviceId;
        readonly edge_id: EdgeId;
        readonly connection_id: ConnectionId;
        readonly watermark: Cursor;
        readonly new: boolean;
      };
      readonly effects: (registered: Registered, values: ReadonlyMap<string, string>) => Promise<Effects>;
    }
);

/** A frame's place in the order, and whether it got it now. */
export interface Placed {
  readonly cursor: Cursor;
  readonly fresh: boolean;
  readonly body: Uint8Array;
}

export type StoredMessage = { readonly row: MessageRow; readonly inserted: boolean } | 'no_lane' | 'deleted';

export interface Emitter {
  /** Resolves with the cursors of its frames once they are appended and published. Its place in the order is taken when this returns. */
  emit(emission: Emission): Promise<readonly Placed[]>;
  /** Live-only frames, now, behind what was published. */
  live(tenant_id: TenantId, frames: readonly LiveFrame[]): void;
  /** The place of a message that was appended a moment ago, before the store has it. */
  placeOf(message_id: MessageId): Cursor | undefined;
  /** Values that are written at their own pace, such as text so far. May be lost. */
  put(tenant_id: TenantId, values: Readonly<Record<string, string | null>>): void;
  /** A value as it stands with the outbox, lost with it. */
  value(tenant_id: TenantId, name: string): Promise<string | undefined>;
  /** Devices with a live connection. */
  connections(tenant_id: TenantId): Promise<readonly DeviceId[]>;
  /** The highest cursor known here; 0 when none is. */
  headOf(tenant_id: TenantId): Cursor;
  /** Nothing waits any more. */
  readonly idle: boolean;
  /** Give up what still waits for a store, and write what was left for later. */
  stop(): Promise<void>;
}

/** Several effects as one, in this order. */
export function mergeEffects(all: readonly Effects[]): Effects {
  const afters = all.flatMap(({ after }) => after ?? []);
  const settles = all.flatMap(({ settle }) => settle ?? []);
  const closes = all.flatMap(({ close }) => close ?? []);
  return {
    frames: all.flatMap(({ frames }) => frames ?? []),
    values: Object.fromEntries(all.flatMap(({ values }) => Object.entries(values ?? {}))),
    forget: all.flatMap(({ forget }) => forget ?? []),
    before: all.flatMap(({ before }) => before ?? []),
    live: all.flatMap(({ live }) => live ?? []),
    agent: all.flatMap(({ agent }) => agent ?? []),
    close: closes,
    know: () => {
      for (const { know } of all) know?.();
    },
    ...(settles.length === 0
      ? {}
      : {
          settle: async () => {
            for (const settle of settles) await settle();
          },
        }),
    ...(afters.length === 0
      ? {}
      : {
          after: async () => {
            for (const after of afters) await after();
          },
        }),
    drop: all.flatMap(({ drop }) => drop ?? []),
  };
}
