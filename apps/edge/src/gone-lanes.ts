import type { EdgeContext } from './context.js';
import type { Feed } from './feed.js';
import { toTicks } from './ticks.js';

/** A channel with its threads, or a thread, that is gone. */
export interface GoneLane {
  readonly chat_id: string;
  /** Absent: the channel with all its threads. */
  readonly thread_id?: string;
  /** Tick. */
  readonly since: number;
}

/** Longer than the bus can bring anything late. */
const kept_ms = 30_000;
const keptMax = 64;

interface LaneFrame {
  readonly chat_id?: string;
  readonly thread_id?: string | null;
  readonly payload: { readonly chat_id: string; readonly thread_id?: string };
}
const frameIn = (body: Uint8Array): LaneFrame => JSON.parse(Buffer.from(body).toString()) as LaneFrame;
const isIn = (body: Uint8Array, lanes: readonly GoneLane[]): boolean => {
  const { chat_id, thread_id } = frameIn(body);
  return lanes.some((lane) => lane.chat_id === chat_id && (lane.thread_id === undefined || lane.thread_id === thread_id));
};

/** From here on nothing live of these lanes is shown, nor what waits of them for somebody who is behind. */
export function endLanes(edge: EdgeContext, feed: Feed, deleted: Uint8Array): void {
  const gone = { ...frameIn(deleted).payload, since: edge.time.tick };
  feed.gone.push(gone);
  if (feed.gone.length > keptMax) feed.gone.shift();
  const drop = (waiting: Map<string, { readonly body: Uint8Array }> | undefined) => {
    for (const [key, { body }] of waiting ?? []) if (isIn(body, [gone])) waiting?.delete(key);
  };
  drop(feed.ahead);
  for (const { state } of feed.behind) if (state.kind === 'catching_up') drop(state.held);
}

export function isOfGone(edge: EdgeContext, feed: Feed, body: Uint8Array): boolean {
  while (feed.gone.length > 0 && edge.time.tick - feed.gone[0]!.since > toTicks(kept_ms)) feed.gone.shift();
  return feed.gone.length > 0 && isIn(body, feed.gone);
}
