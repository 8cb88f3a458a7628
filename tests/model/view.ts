import { type AnyFrame, laneOf, type Payload, type Received, type TestDevice } from '@iris/testkit';

/** What an app shows, built of nothing but the frames it was given: the law of the protocol, from the reader's side. */
export interface View {
  /** Name of each channel and thread, by lane. */
  readonly channels: Map<string, string>;
  default_chat: string | undefined;
  /** Finished messages of each lane, in the order in which they were said. */
  readonly messages: Map<string, Map<string, Shown>>;
  readonly busy: Set<string>;
  /** Lane, and text so far, of running messages by id. */
  readonly running: Map<string, { readonly lane: string; readonly text: string }>;
  /** Lanes of open pickers, by id. */
  readonly pickers: Map<string, string>;
  /** What other devices have read: by device and lane, the message. */
  readonly reads: Map<string, string>;
  /** Its own messages that the agent has: by id, in which lane it was said, each time. */
  readonly receipts: Map<string, readonly string[]>;
  /** Since `sync` said that something is missing: what is shown of a lane is what the next page of its history says. */
  reloading: boolean;
}
export interface Shown {
  readonly role: string;
  readonly text: string;
}

export function viewOf(device: TestDevice): View {
  const view: View = {
    channels: new Map(),
    default_chat: undefined,
    messages: new Map(),
    busy: new Set(),
    running: new Map(),
    pickers: new Map(),
    reads: new Map(),
    receipts: new Map(),
    reloading: false,
  };
  let held: AnyFrame[] = [];
  let connection = 0;
  let synced = false;
  for (const one of device.received.all as readonly Received[]) {
    if (one.connection !== connection) {
      connection = one.connection;
      synced = false;
      held = [];
    }
    const { frame, source } = one;
    if (frame.type === 'sync.done') {
      synced = true;
      if (frame.payload.truncated || frame.payload.reset) {
        view.messages.clear();
        view.reloading = true;
      }
      for (const waiting of held.splice(0)) apply(view, waiting, device);
    } else if (frame.type === 'hello.ack' || synced || source !== 'live') apply(view, frame, device);
    // Older things come first: what was missed, by `sync`.
    else held.push(frame);
  }
  return view;
}

const entries = (payload: Payload) =>
  (payload.channels ?? []) as { chat_id: string; thread_id?: string; name: string; is_default?: boolean }[];

function directory(view: View, payload: Payload): void {
  view.channels.clear();
  for (const { chat_id, thread_id, name, is_default } of entries(payload)) {
    view.channels.set(laneOf({ chat_id, thread_id }), name);
    if (is_default === true) view.default_chat = chat_id;
  }
}

function apply(view: View, frame: AnyFrame, device: TestDevice): void {
  const { type, payload } = frame;
  const lane = laneOf(frame);
  const id = payload.message_id ?? '';
  if (type === 'hello.ack') {
    directory(view, payload);
    // What goes on now is told anew.
    for (const known of [view.busy, view.running, view.pickers]) known.clear();
  } else if (type === 'channel.list') directory(view, payload);
  else if (type === 'channel.created' || type === 'channel.renamed')
    view.channels.set(
      laneOf({ chat_id: payload.chat_id ?? frame.chat_id, thread_id: payload.thread_id ?? frame.thread_id }),
      payload.name as string,
    );
  else if (type === 'channel.deleted') forget(view, payload.chat_id!, payload.thread_id);
  else if (type === 'message' || type === 'message.stop') {
    view.running.delete(id);
    const shown = { role: payload.role ?? 'assistant', text: payload.final_text ?? payload.text ?? '' };
    const messages = view.messages.get(lane) ?? new Map<string, Shown>();
    view.messages.set(lane, messages.set(id, shown));
  } else if (type === 'history' && view.reloading) {
    // The newest page has all that these tests say in a lane. What came live meanwhile stands behind it.
    const live = view.messages.get(lane) ?? new Map<string, Shown>();
    const rows = (payload.messages ?? []) as { message_id: string; role: string; text: string }[];
    const page = new Map(rows.map(({ message_id, role, text }) => [message_id, { role, text }]));
    for (const [message_id, row] of live) if (!page.has(message_id)) page.set(message_id, row);
    view.messages.set(lane, page);
  } else if (type === 'read.receipt' && payload.device_id !== undefined) view.reads.set(`${payload.device_id} ${lane}`, id);
  else if (type === 'read.receipt') view.receipts.set(id, [...(view.receipts.get(id) ?? []), lane]);
  else if (type === 'message.deleted')
    for (const gone of payload.message_ids ?? []) {
      view.messages.get(lane)?.delete(gone);
      view.running.delete(gone);
    }
  else if (type === 'message.start') view.running.set(id, { lane, text: view.running.get(id)?.text ?? '' });
  else if (type === 'message.update') view.running.set(id, { lane, text: payload.text! });
  else if (type === 'message.delta')
    view.running.set(id, { lane, text: (view.running.get(id)?.text ?? '').slice(0, payload.offset) + payload.text });
  else if (type === 'agent.busy') view.busy.add(lane);
  else if (type === 'agent.idle') view.busy.delete(lane);
  else if (type === 'picker.closed') view.pickers.delete(payload.picker_id!);
  else if (type.startsWith('picker.')) view.pickers.set(payload.picker_id!, lane);
  else if (type === 'ack' && frame.id !== undefined) {
    const asked = device.asked.find(({ answers }) => answers.includes(frame));
    if (asked?.type === 'picker.select') view.pickers.delete(asked.payload.picker_id!);
  }
}

function forget(view: View, chat_id: string, thread_id: string | null | undefined): void {
  const gone = laneOf({ chat_id, thread_id });
  const isGone = (lane: string): boolean => lane === gone || (!thread_id && lane.startsWith(`${gone}/`));
  for (const key of [...view.reads.keys()]) if (isGone(key.slice(key.indexOf(' ') + 1))) view.reads.delete(key);
  for (const known of [view.channels, view.messages, view.busy]) for (const lane of [...known.keys()]) if (isGone(lane)) known.delete(lane);
  for (const [id, { lane }] of view.running) if (isGone(lane)) view.running.delete(id);
  for (const [id, lane] of view.pickers) if (isGone(lane)) view.pickers.delete(id);
}
