import { type DownFrame, type DownType, durableFrame, durableMessage, finalKey, type Lane, type UpFrame } from '@iris/protocol';
import type { ChannelRow, MessageRow } from '@iris/store';
import type { Origin, OutFrame } from '../emission.js';

type FrameOf<T extends DownType> = Extract<DownFrame, { type: T }>;

/** Names of what ends, for edges: nothing live about it is shown once its end went out. */
export const turnName = (turn_id: string): string => `turn:${turn_id}`;
export const toolName = (turn_id: string, index: number): string => `tool:${turn_id}:${index}`;

/** Keys under which the live frames of a text come: of each, the newest stands for all. */
export const liveTextKey = (message_id: string): string => `text:${message_id}`;
export const liveReasoningKey = (message_id: string): string => `reasoning:${message_id}`;

/** The end of a tool. */
export const toolEndOut = (turn: Lane & { readonly turn_id: string }, payload: FrameOf<'tool.end'>['payload']): OutFrame => {
  const name = toolName(turn.turn_id, payload.index);
  return durableFrame(laneFrame('tool.end', turn, payload), { key: `${name}:end`, ends: name });
};

/** A turn at work, as devices see it. */
export const busyOut = (turn: Lane, reason: FrameOf<'agent.busy'>['payload']['reason'], key: string): OutFrame =>
  durableFrame(laneFrame('agent.busy', turn, { reason }), { key });

/** Of the `agent.busy` with which a turn begins. */
export const acceptedKey = ({ turn_id }: { readonly turn_id: string }): string => `busy:${turn_id}:accepted`;

/** The end of a turn, as devices see it. */
export const idleOut = (turn: Lane & { readonly turn_id: string }): OutFrame =>
  durableFrame(laneFrame('agent.idle', turn, {}), { key: `idle:${turn.turn_id}`, ends: turnName(turn.turn_id) });

/** A frame about a lane. */
export function laneFrame<T extends DownType>(type: T, lane: Lane, payload: FrameOf<T>['payload']): FrameOf<T> {
  return { type, chat_id: lane.chat_id, thread_id: lane.thread_id, payload } as FrameOf<T>;
}

/** The final `message` of a row, wherever it came from. */
export function messageOut(row: MessageRow, origin?: Origin): OutFrame {
  return { ...durableMessage(row), ...(origin ? { origin } : {}), ...placesOf(row) };
}

/** The end of a streamed message. */
export function stopOut(row: MessageRow): OutFrame {
  const frame = laneFrame('message.stop', row, {
    message_id: row.message_id,
    final_text: row.text,
    ...(row.reasoning === null ? {} : { reasoning: row.reasoning }),
    ...(row.model === null ? {} : { model: row.model }),
    ...(row.tokens === null ? {} : { tokens: row.tokens }),
    ...(row.runtime === null ? {} : { runtime: row.runtime }),
    ...(row.media === null || row.media.length === 0
      ? {}
      : { media: row.media as NonNullable<FrameOf<'message.stop'>['payload']['media']> }),
    ts: row.ts,
    ...(row.interrupted ? { interrupted: true } : {}),
  });
  return { ...durableFrame(frame, { key: finalKey(row), role: row.role }), ...placesOf(row) };
}

/** A place once given stays: a late final does not move its message. */
const placesOf = (row: MessageRow) => (row.cursor === null ? { places: row.message_id } : {});

export function channelEntry(row: ChannelRow) {
  return {
    chat_id: row.chat_id,
    name: row.name,
    kind: row.kind,
    ...(row.is_default ? { is_default: true } : {}),
    ...(row.thread_id === null ? {} : { thread_id: row.thread_id, parent_chat_id: row.chat_id }),
    ...(row.auto ? { auto: true } : {}),
  };
}

export const channelCreated = (row: ChannelRow) =>
  laneFrame('channel.created', row, { parent_chat_id: row.thread_id === null ? null : row.chat_id, ...channelEntry(row) });

export const channelRenamed = (row: ChannelRow) =>
  laneFrame('channel.renamed', row, {
    chat_id: row.chat_id,
    ...(row.thread_id === null ? {} : { thread_id: row.thread_id, parent_chat_id: row.chat_id }),
    name: row.name,
    kind: row.kind,
  });

export const channelDeleted = (lane: Lane) =>
  laneFrame('channel.deleted', lane, { chat_id: lane.chat_id, ...(lane.thread_id === null ? {} : { thread_id: lane.thread_id }) });

/** The lane a frame names; undefined without a `chat_id`. */
export function laneOf(frame: Pick<UpFrame, 'chat_id' | 'thread_id'>): Lane | undefined {
  return frame.chat_id === undefined ? undefined : { chat_id: frame.chat_id, thread_id: frame.thread_id ?? null };
}
