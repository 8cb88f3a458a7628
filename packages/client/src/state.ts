import type { DownFrame, DownPayload, Lane, MessageId } from '@iris/protocol';

export type Channel = DownPayload<'channel.list'>['channels'][number];
export type FinishedMessage = DownPayload<'message'>;
export type CommandEntry = DownPayload<'commands.catalog'>['commands'][number];

/** One thing in a conversation, in the order in which it is shown. */
export type Item =
  | {
      readonly kind: 'message';
      readonly key: string;
      readonly message: FinishedMessage;
      /** `sending`: not acknowledged yet; `failed`: refused; `streaming`: more text comes. */
      readonly state: 'sending' | 'failed' | 'streaming' | 'done';
      /** The agent has taken it (✓✓). */
      readonly received?: boolean;
      readonly failure?: string;
    }
  | { readonly kind: 'commentary'; readonly key: string; readonly text: string }
  | {
      readonly kind: 'tool';
      readonly key: string;
      readonly tool: DownPayload<'tool.start'>;
      readonly note?: string;
      readonly end?: DownPayload<'tool.end'>;
    }
  | {
      readonly kind: 'picker';
      readonly key: string;
      readonly type: PickerType;
      readonly picker: Picker;
      readonly closed?: DownPayload<'picker.closed'>;
    }
  | { readonly kind: 'notice'; readonly key: string; readonly notice: DownPayload<'notification'> }
  | { readonly kind: 'media'; readonly key: string; readonly media: DownPayload<'media.offer'> };

export type PickerType = 'picker.model' | 'picker.choice' | 'picker.clarify' | 'picker.approval' | 'picker.confirm';
export type Picker =
  | DownPayload<'picker.model'>
  | DownPayload<'picker.choice'>
  | DownPayload<'picker.clarify'>
  | DownPayload<'picker.approval'>
  | DownPayload<'picker.confirm'>;

export interface LaneView {
  readonly items: readonly Item[];
  readonly busy?: DownPayload<'agent.busy'>['reason'];
  readonly typing: boolean;
  /** Finished messages that came while nobody looked. */
  readonly unread: number;
  /** Older messages than the first item exist; undefined: history was not loaded yet. */
  readonly has_more?: boolean;
}

export interface ClientState {
  readonly channels: readonly Channel[];
  readonly lanes: ReadonlyMap<string, LaneView>;
  readonly gateway: 'online' | 'restarting' | 'degraded' | 'unknown';
  /** What a browser subscribes with, when the gateway can push to browsers. */
  readonly vapid_key?: string | undefined;
}

export const emptyState: ClientState = { channels: [], lanes: new Map(), gateway: 'unknown' };
export const emptyLane: LaneView = { items: [], typing: false, unread: 0 };

/** A lane as a map key; the ids are the gateway's and hold no newline. */
export const keyOf = (lane: { readonly chat_id: string; readonly thread_id?: string | null | undefined }): string =>
  lane.thread_id == null ? lane.chat_id : `${lane.chat_id}\n${lane.thread_id}`;

/** The lane after `change`, in a new state. */
export function withLane(state: ClientState, key: string, change: (lane: LaneView) => LaneView): ClientState {
  const before = state.lanes.get(key) ?? emptyLane;
  const after = change(before);
  return after === before ? state : { ...state, lanes: new Map(state.lanes).set(key, after) };
}

/** Put `item` where its key stands, or at the end. */
export function upsert(items: readonly Item[], item: Item): readonly Item[] {
  const at = items.findIndex((other) => other.key === item.key);
  return at < 0 ? [...items, item] : items.with(at, item);
}

const messageKey = (id: string): string => `m:${id}`;
export const sendingKey = (client_ref: string): string => `r:${client_ref}`;
const done = (message: FinishedMessage): Item => ({ kind: 'message', key: messageKey(message.message_id), message, state: 'done' });

/**
 * What a frame changes. Pure, and harmless when a frame comes twice: everything is found by its id and replaced.
 * Frames of types that this version does not know change nothing.
 */
export function apply(state: ClientState, frame: DownFrame): ClientState {
  switch (frame.type) {
    case 'hello.ack':
      return { ...state, channels: frame.payload.channels, vapid_key: frame.payload.push?.vapid_key };
    case 'status':
      return { ...state, gateway: frame.payload.state };
    case 'channel.list':
      return { ...state, channels: frame.payload.channels };
    case 'channel.created':
      return { ...state, channels: [...state.channels.filter((c) => keyOf(c) !== keyOf(frame.payload)), frame.payload] };
    case 'channel.renamed':
      return {
        ...state,
        channels: state.channels.map((c) => (keyOf(c) === keyOf(frame.payload) ? { ...c, name: frame.payload.name } : c)),
      };
    case 'channel.deleted': {
      const { chat_id, thread_id } = frame.payload;
      const gone = (lane: { chat_id: string; thread_id?: string | null | undefined }): boolean =>
        lane.chat_id === chat_id && (thread_id === undefined || lane.thread_id === thread_id);
      const lanes = new Map([...state.lanes].filter(([key]) => !gone({ chat_id: key.split('\n')[0]!, thread_id: key.split('\n')[1] })));
      return { ...state, channels: state.channels.filter((c) => !gone(c)), lanes };
    }
    default:
      return frame.chat_id === undefined ? state : withLane(state, keyOf(frame as Lane), (lane) => applyToLane(lane, frame));
  }
}

function applyToLane(lane: LaneView, frame: DownFrame): LaneView {
  const put = (item: Item): LaneView => ({ ...lane, items: upsert(lane.items, item) });
  const find = (id: string): Item | undefined => lane.items.find((item) => item.key === messageKey(id));
  switch (frame.type) {
    case 'message': {
      const ref = frame.payload.client_ref;
      const before = lane.items.find((item) => item.key === messageKey(frame.payload.message_id));
      const received = before?.kind === 'message' && before.received ? { received: true } : {};
      const item = { ...done(frame.payload), ...received };
      // The echo of what we sent takes the place of the bubble that was waiting for it.
      const waiting = ref === undefined ? -1 : lane.items.findIndex((other) => other.key === sendingKey(ref));
      if (waiting >= 0 && !before) return { ...lane, items: [...lane.items.filter((_, at) => at !== waiting), item] };
      return { ...lane, items: upsert(lane.items, item), unread: before || frame.payload.role === 'user' ? lane.unread : lane.unread + 1 };
    }
    case 'message.start': {
      const before = find(frame.payload.message_id);
      if (before) return lane;
      return put({
        kind: 'message',
        key: messageKey(frame.payload.message_id),
        message: { message_id: frame.payload.message_id, role: frame.payload.role, text: '', ts: 0 },
        state: 'streaming',
      });
    }
    case 'message.update':
      return streaming(lane, frame.payload.message_id, (message) => ({ ...message, text: frame.payload.text }));
    case 'message.delta':
      return streaming(lane, frame.payload.message_id, (message) =>
        message.text.length === frame.payload.offset ? { ...message, text: message.text + frame.payload.text } : message,
      );
    case 'reasoning.delta':
      return streaming(lane, frame.payload.message_id, (message) =>
        // From offset 0 it is all of it, as after `hello.ack` and after a gap.
        frame.payload.offset === 0
          ? { ...message, reasoning: frame.payload.text }
          : (message.reasoning ?? '').length === frame.payload.offset
            ? { ...message, reasoning: (message.reasoning ?? '') + frame.payload.text }
            : message,
      );
    case 'message.stop': {
      const { final_text, ...rest } = frame.payload;
      const before = find(frame.payload.message_id);
      const started = before?.kind === 'message' ? before.message : undefined;
      const message: FinishedMessage = { role: started?.role ?? 'assistant', ...rest, text: final_text, ts: rest.ts ?? started?.ts ?? 0 };
      const fresh = before?.kind === 'message' && before.state === 'done' ? 0 : 1;
      const item = done(message);
      const at = lane.items.findIndex((other) => other.key === item.key);
      // Its place in history is that of its end: what was said while it streamed comes before it.
      const overtaken = fresh === 1 && at >= 0 && lane.items.slice(at + 1).some((other) => other.kind === 'message');
      const items = overtaken ? [...lane.items.filter((other) => other.key !== item.key), item] : upsert(lane.items, item);
      return { ...lane, items, unread: lane.unread + fresh };
    }
    case 'message.deleted': {
      const ids = new Set(frame.payload.message_ids.map(messageKey));
      return { ...lane, items: lane.items.filter((item) => !ids.has(item.key)) };
    }
    case 'commentary':
      return put({ kind: 'commentary', key: messageKey(frame.payload.message_id), text: frame.payload.text });
    case 'tool.start':
      return put({ kind: 'tool', key: toolKey(lane, frame.payload.index, true), tool: frame.payload });
    case 'tool.progress':
      return onTool(lane, frame.payload.index, (item) => (frame.payload.note === undefined ? item : { ...item, note: frame.payload.note }));
    case 'tool.end':
      return onTool(lane, frame.payload.index, (item) => ({ ...item, end: frame.payload }));
    case 'picker.model':
    case 'picker.choice':
    case 'picker.clarify':
    case 'picker.approval':
    case 'picker.confirm':
      return put({ kind: 'picker', key: `p:${frame.payload.picker_id}`, type: frame.type, picker: frame.payload });
    case 'picker.closed': {
      const item = lane.items.find((other) => other.key === `p:${frame.payload.picker_id}`);
      return item?.kind === 'picker' ? put({ ...item, closed: frame.payload }) : lane;
    }
    case 'notification':
      return put({ kind: 'notice', key: `n:${frame.payload.ts}:${frame.payload.kind}:${frame.payload.title}`, notice: frame.payload });
    case 'media.offer':
      return put({ kind: 'media', key: `f:${frame.payload.media_id}`, media: frame.payload });
    case 'agent.busy':
      return { ...lane, busy: frame.payload.reason };
    case 'agent.idle': {
      const { busy: _, ...rest } = lane;
      return { ...rest, typing: false };
    }
    case 'typing':
      return { ...lane, typing: frame.payload.on };
    case 'typing.stop':
      return { ...lane, typing: false };
    case 'read.receipt': {
      if (frame.payload.device_id !== undefined) return lane;
      const item = find(frame.payload.message_id);
      return item?.kind === 'message' && !item.received ? put({ ...item, received: true }) : lane;
    }
    default:
      return lane;
  }
}

function streaming(lane: LaneView, id: string, change: (message: FinishedMessage) => FinishedMessage): LaneView {
  const item = lane.items.find((other) => other.key === messageKey(id));
  if (item?.kind !== 'message' || item.state !== 'streaming') return lane;
  return { ...lane, items: upsert(lane.items, { ...item, message: change(item.message) }) };
}

/**
 * Tools are numbered per turn, so the same index comes again in the next one: a new `tool.start` begins a new row when
 * the last row of that index has ended.
 */
function toolKey(lane: LaneView, index: number, starts: boolean): string {
  const rows = lane.items.filter((item) => item.kind === 'tool' && item.tool.index === index);
  const last = rows.at(-1);
  if (last?.kind !== 'tool') return `t:${index}:0`;
  return starts && last.end ? `t:${index}:${rows.length}` : last.key;
}

type ToolItem = Extract<Item, { kind: 'tool' }>;
function onTool(lane: LaneView, index: number, change: (item: ToolItem) => ToolItem): LaneView {
  const key = toolKey(lane, index, false);
  const item = lane.items.find((other) => other.key === key);
  return item?.kind === 'tool' ? { ...lane, items: upsert(lane.items, change(item)) } : lane;
}

/** A page of history, put before what is there already; what both know stands where history has it. */
export function applyHistory(lane: LaneView, page: DownPayload<'history'>): LaneView {
  const known = new Map(lane.items.map((item) => [item.key, item]));
  const older = page.messages.map((message) => {
    const item = done(message);
    const before = known.get(item.key);
    known.delete(item.key);
    return before?.kind === 'message' && before.received ? { ...item, received: true } : item;
  });
  return { ...lane, items: [...older, ...lane.items.filter((item) => known.has(item.key))], has_more: page.has_more };
}

/** The picker, wherever it stands, answered with `value`. */
export function closePicker(state: ClientState, picker_id: string, value: string | string[]): ClientState {
  let after = state;
  for (const [key, { items }] of state.lanes) {
    const item = items.find((other) => other.key === `p:${picker_id}`);
    if (item?.kind === 'picker')
      after = withLane(after, key, (lane) => ({ ...lane, items: upsert(lane.items, { ...item, closed: { picker_id, value } }) }));
  }
  return after;
}

/** What an own message looks like until the gateway has it. */
export const sendingItem = (client_ref: string, text: string, ts: number, reply_to?: string): Item => ({
  kind: 'message',
  key: sendingKey(client_ref),
  message: { message_id: client_ref as MessageId, role: 'user', text, ts, client_ref, ...(reply_to === undefined ? {} : { reply_to }) },
  state: 'sending',
});
