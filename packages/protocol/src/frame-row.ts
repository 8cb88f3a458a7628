import type { TSchema } from 'typebox';

/** What every side of a row has. */
export interface PayloadRow {
  /** JSON Schema of the payload, compiled once. Fields it does not name are ignored. */
  readonly schema: TSchema;
  /** What a schema cannot say, checked after it: what is wrong, beginning with the field's name. */
  refine?(payload: unknown, lane: { chat_id?: string | undefined }): string | undefined;
}

/** Device → gateway. */
export interface UpRow extends PayloadRow {
  /**
   * `lane`: `chat_id` is required; `lane_or_default`: without one, the default channel; `lane_or_all`: without one, every lane;
   * `none`: not about a lane, a `chat_id` is not looked at.
   */
  readonly scope: 'none' | 'lane' | 'lane_or_default' | 'lane_or_all';
  readonly answered_by: 'edge' | 'session';
  /** The frame that answers a request with an `id`; null when nothing does. An `error` can always stand in its place. */
  readonly answer: string | null;
  /** Milliseconds from arrival to the answer; then the edge says `error internal`. */
  readonly deadline_ms: number;
  /** It changes state: it carries an idempotency key across retries. */
  readonly changes: boolean;
  /** The next request of the connection may start once this one has its place in the order. */
  readonly pipelined?: true;
}

/** Gateway → device. */
export interface DownRow extends PayloadRow {
  /**
   * `durable`: outboxed, never dropped, replayed by `sync`. `coalesced`: live only, the latest of its key replaces the
   * one waiting. `live`: live only. `response`: to one connection, never dropped while it lives.
   */
  readonly class: 'durable' | 'coalesced' | 'live' | 'response';
  /** What a newer frame of the same type replaces: with `coalesced`, the one waiting; with `durable`, the older one in `sync`. */
  readonly key?: 'message' | 'tool' | 'lane_activity' | 'lane_receipt' | 'picker';
  /** May wake a phone. `final`: only from roles assistant and cron. */
  readonly push?: 'final' | 'always';
}

/** Agent → gateway. */
export interface AgentUpRow extends PayloadRow {
  /** Carries a `seq`, is kept by the agent until acked, and is stored before the ack. */
  readonly durable: boolean;
  /** Whether it belongs to a turn; `none` is not about a lane either. */
  readonly turn: 'required' | 'optional' | 'none';
}

/** Gateway → agent. */
export interface AgentDownRow extends PayloadRow {
  readonly durable: boolean;
}

/** The four ways a frame can go. */
export type FrameSide = 'up' | 'down' | 'agent_up' | 'agent_down';

/** All that is said with one `type`, from each side that says it. */
export interface FrameRow {
  readonly up?: UpRow;
  readonly down?: DownRow;
  readonly agent_up?: AgentUpRow;
  readonly agent_down?: AgentDownRow;
  /** Rules of SPEC.md that say what it means. Rules of every frame (ENV, OUT, ORD, CLS, LIM) are named only where it is their subject. */
  readonly rules: readonly string[];
}
