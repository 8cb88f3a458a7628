import type { AnyFrame, Payload } from './frames.js';

/** One turn as the agent lives it. Durable frames of a turn are kept and sent again by the agent's link. */
export interface TestTurn {
  readonly turn_id: string;
  readonly chat_id: string;
  readonly thread_id: string | null;
  /** `turn.start`'s payload; of the last attempt. */
  readonly offer: Payload;
  readonly text: string;
  readonly state: 'offered' | 'accepted' | 'ended' | 'abandoned';
  /** `agent.stop` has come. */
  readonly stopped: boolean;
  readonly steers: readonly string[];
  /** Running messages and their text so far, by the agent's own ids. */
  readonly running: ReadonlyMap<string, { role: string; text: string; reasoning: string }>;

  accept(): void;
  busy(reason: string): void;
  /** Opens a message; gives its id. */
  start(message_id?: string, role?: string): string;
  delta(text: string, message_id?: string): void;
  /** The whole text so far. */
  update(text: string, message_id?: string): void;
  reason(text: string, message_id?: string): void;
  /** `final_text` defaults to the text so far. */
  stop(more?: Payload): void;
  message(text: string, more?: Payload): string;
  commentary(text: string): string;
  toolStart(index: number, name?: string, more?: Payload): void;
  toolProgress(index: number, note: string, name?: string): void;
  toolEnd(index: number, more?: Payload, name?: string): void;
  /** `kind` is what follows `picker.`; gives the agent's picker id. */
  picker(kind: string, payload: Payload): string;
  typing(on?: boolean): void;
  end(outcome?: string, more?: Payload): void;
  /** Any frame of this turn. */
  say(type: string, payload: Payload): void;
}

/** The agent's side of a {@link TestTurn}: what the link does to it. */
export interface TurnHandle {
  readonly turn: TestTurn;
  readonly state: TestTurn['state'];
  readonly open: boolean;
  offered(payload: Payload): void;
  stopRequested(): void;
  steered(text: string): void;
  abandon(): void;
  snapshot(): Payload;
}

export function testTurn(start: AnyFrame, say: (frame: AnyFrame) => void, newId: (kind: string) => string): TurnHandle {
  const turn_id = start.turn_id!;
  const chat_id = start.chat_id!;
  const thread_id = start.thread_id ?? null;
  let offer = start.payload;
  let state: TestTurn['state'] = 'offered';
  let stopped = false;
  const steers: string[] = [];
  const running = new Map<string, { role: string; text: string; reasoning: string }>();
  const tools = new Map<number, { index: number; name: string; preview?: string }>();
  const pickers = new Set<string>();
  let reason = 'processing';

  const send = (type: string, payload: Payload) => say({ type, chat_id, thread_id, turn_id, payload });
  const message = (message_id: string | undefined) => {
    const id = message_id ?? [...running.keys()].at(-1);
    const found = id === undefined ? undefined : running.get(id);
    if (id === undefined || found === undefined) throw new Error(`no running message ${message_id ?? ''} in ${turn_id}`);
    return { id, found };
  };
  const offerText = () => String((offer.message as unknown as Payload | undefined)?.text ?? '');

  const turn: TestTurn = {
    turn_id,
    chat_id,
    thread_id,
    get offer() {
      return offer;
    },
    get text() {
      return offerText();
    },
    get state() {
      return state;
    },
    get stopped() {
      return stopped;
    },
    steers,
    running,
    accept() {
      if (state !== 'offered') return;
      state = 'accepted';
      send('turn.accepted', {});
    },
    busy(why) {
      reason = why;
      send('agent.busy', { reason: why });
    },
    start(message_id = newId('m'), role = 'assistant') {
      running.set(message_id, { role, text: '', reasoning: '' });
      send('message.start', { message_id, role });
      return message_id;
    },
    delta(text, message_id) {
      const { id, found } = message(message_id);
      const offset = found.text.length;
      found.text += text;
      send('message.delta', { message_id: id, offset, text });
    },
    update(text, message_id) {
      const { id, found } = message(message_id);
      found.text = text;
      send('message.update', { message_id: id, text });
    },
    reason(text, message_id) {
      const { id, found } = message(message_id);
      const offset = found.reasoning.length;
      found.reasoning += text;
      send('reasoning.delta', { message_id: id, offset, text });
    },
    stop({ message_id, ...more } = {}) {
      const { id, found } = message(message_id);
      running.delete(id);
      const reasoning = found.reasoning === '' ? {} : { reasoning: found.reasoning };
      send('message.stop', { message_id: id, final_text: found.text, ...reasoning, ...more });
    },
    message(text, { message_id = newId('m'), ...more } = {}) {
      send('message', { message_id, role: 'assistant', text, ...more });
      return message_id;
    },
    commentary(text) {
      const message_id = newId('c');
      send('commentary', { message_id, text });
      return message_id;
    },
    toolStart(index, name = 'terminal', more = {}) {
      tools.set(index, { index, name });
      send('tool.start', { index, name, ...more });
    },
    toolProgress: (index, note, name = 'terminal') => send('tool.progress', { index, name, note }),
    toolEnd(index, more = {}, name = 'terminal') {
      tools.delete(index);
      send('tool.end', { index, name, ok: true, duration: 0.1, ...more });
    },
    picker(kind, payload) {
      const picker_id = payload.picker_id ?? newId('p');
      pickers.add(picker_id);
      send(`picker.${kind}`, { ...payload, picker_id });
      return picker_id;
    },
    typing: (on = true) => send('typing', { on }),
    end(outcome = 'completed', more = {}) {
      if (state === 'ended') return;
      state = 'ended';
      send('turn.end', { outcome, ...more });
    },
    say: send,
  };
  return {
    turn,
    get state() {
      return state;
    },
    get open() {
      return state === 'accepted';
    },
    offered: (payload) => {
      offer = payload;
    },
    stopRequested: () => {
      stopped = true;
    },
    steered: (text) => void steers.push(text),
    abandon() {
      if (state !== 'ended') state = 'abandoned';
    },
    snapshot: () => ({
      messages: [...running].map(([message_id, { role, text, reasoning }]) => ({
        message_id,
        role,
        text,
        ...(reasoning === '' ? {} : { reasoning }),
      })),
      tools: [...tools.values()],
      pickers: [...pickers],
      reason,
    }),
  };
}
