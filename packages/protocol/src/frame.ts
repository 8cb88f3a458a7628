import type {
  AgentDownPayload,
  AgentDownType,
  AgentUpPayload,
  AgentUpType,
  DownPayload,
  DownType,
  UpPayload,
  UpType,
} from './frame-table.js';
import type { ChatId, Cursor, ThreadId, TurnId } from './ids.js';

/** A request's id: a safe integer or a string of 1–64 characters, echoed exactly. */
export type RequestId = number | string;

/** The whole conversation of a device: what it says… */
export type UpFrame = {
  [T in UpType]: {
    readonly type: T;
    readonly id?: RequestId;
    readonly chat_id?: ChatId;
    readonly thread_id?: ThreadId | null;
    readonly payload: UpPayload<T>;
  };
}[UpType];

/** …and what it hears. */
export type DownFrame = {
  [T in DownType]: {
    readonly type: T;
    readonly id?: RequestId;
    readonly chat_id?: ChatId;
    readonly thread_id?: ThreadId | null;
    readonly cursor?: Cursor;
    readonly payload: DownPayload<T>;
  };
}[DownType];

/** The whole conversation of an agent: what it says… */
export type AgentUpFrame = {
  [T in AgentUpType]: {
    readonly type: T;
    readonly seq?: number;
    readonly ack?: number;
    readonly id?: RequestId;
    readonly chat_id?: ChatId;
    readonly thread_id?: ThreadId | null;
    readonly turn_id?: TurnId;
    readonly payload: AgentUpPayload<T>;
  };
}[AgentUpType];

/** …and what it hears. */
export type AgentDownFrame = {
  [T in AgentDownType]: {
    readonly type: T;
    readonly seq?: number;
    readonly ack?: number;
    readonly id?: RequestId;
    readonly chat_id?: ChatId;
    readonly thread_id?: ThreadId | null;
    readonly turn_id?: TurnId;
    readonly payload: AgentDownPayload<T>;
  };
}[AgentDownType];

export type UpFrameOf<T extends UpType> = Extract<UpFrame, { type: T }>;
export type DownFrameOf<T extends DownType> = Extract<DownFrame, { type: T }>;
export type AgentUpFrameOf<T extends AgentUpType> = Extract<AgentUpFrame, { type: T }>;
export type AgentDownFrameOf<T extends AgentDownType> = Extract<AgentDownFrame, { type: T }>;
