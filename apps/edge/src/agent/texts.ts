import type { AgentUpFrameOf } from '@iris/protocol';
import type { Clock, Timer } from '@iris/runtime';

/**
 * The running messages of one link, put together from whatever the agent sends of them, and let go at a pace: the first
 * at once, then one per max(`update_ms`, its bytes ÷ `update_bytes_per_second`), always with the newest text. Other
 * ephemerals (`tool.progress`, `typing`) go by the same pace, each under its key.
 */
export interface Texts {
  start(frame: AgentUpFrameOf<'message.start'>): void;
  update(frame: AgentUpFrameOf<'message.update'>): void;
  /** `offset` must be what is there already; else it is ignored, and so is all that follows until a whole text comes. */
  delta(frame: AgentUpFrameOf<'message.delta'>): void;
  reasoning(frame: AgentUpFrameOf<'reasoning.delta'>): void;
  snapshot(frame: AgentUpFrameOf<'turn.snapshot'>): void;
  /** The newest `body` under `key`. */
  put(key: string, turn_id: string | undefined, type: string, body: Uint8Array): void;
  /** Send what waits of a turn, before something that belongs behind it; `except` says its end itself. */
  flush(turn_id: string, except?: string): void;
  /** The message has its final text: what waits is dropped. */
  stop(turn_id: string, message_id: string): void;
  /** Nothing of the turn waits any longer. */
  endTurn(turn_id: string): void;
  end(): void;
  readonly size: number;
}

interface Slot {
  readonly turn_id: string | undefined;
  /** Clock milliseconds before which nothing more is sent. */
  ready_at: number;
  dirty: boolean;
  timer: Timer | undefined;
  content: Text | { readonly kind: 'frame'; type: string; body: Uint8Array };
}
interface Text {
  readonly kind: 'text';
  readonly message_id: string;
  text: string;
  reasoning: string;
  /** Something is missing: wait for a whole text. */
  broken: boolean;
}

/** Of one link, so that an agent that never stops its messages cannot fill the memory. */
const slotsMax = 4_096;
/** UTF-16 code units of one text; beyond, only its final text counts. */
const textMax = 1024 * 1024;
const utf8 = new TextEncoder();

/** An agent's names for its messages are unique within a turn only: many call each turn's first one alike, and turns run side by side. */
const messageKey = (turn_id: string | undefined, message_id: string | undefined) => `m:${turn_id ?? ''}\n${message_id ?? ''}`;

export function texts(deps: {
  readonly clock: Clock;
  readonly config: { readonly update_ms: number; readonly update_bytes_per_second: number };
  send(type: string, body: Uint8Array): void;
}): Texts {
  const { clock, config } = deps;
  const slots = new Map<string, Slot>();

  const slotOf = (key: string, turn_id: string | undefined, make: () => Slot['content']): Slot => {
    const found = slots.get(key);
    if (found !== undefined) return found;
    if (slots.size >= slotsMax) drop(slots.keys().next().value!);
    const slot: Slot = { turn_id, ready_at: 0, dirty: false, timer: undefined, content: make() };
    slots.set(key, slot);
    return slot;
  };
  const textSlot = (turn_id: string | undefined, message_id: string): { slot: Slot; text: Text } => {
    const slot = slotOf(messageKey(turn_id, message_id), turn_id, () => ({
      kind: 'text',
      message_id,
      text: '',
      reasoning: '',
      broken: false,
    }));
    return { slot, text: slot.content as Text };
  };
  const drop = (key: string) => {
    slots.get(key)?.timer?.cancel();
    slots.delete(key);
  };

  const bodyOf = ({ content, turn_id }: Slot): Uint8Array => {
    if (content.kind === 'frame') return content.body;
    const { message_id, text, reasoning } = content;
    const payload = { message_id, text, ...(reasoning === '' ? {} : { reasoning }) };
    return utf8.encode(JSON.stringify({ type: 'message.update', turn_id, payload }));
  };
  const send = (slot: Slot) => {
    slot.timer?.cancel();
    slot.timer = undefined;
    slot.dirty = false;
    const body = bodyOf(slot);
    slot.ready_at = clock.now() + Math.max(config.update_ms, (body.length * 1000) / config.update_bytes_per_second);
    deps.send(slot.content.kind === 'frame' ? slot.content.type : 'message.update', body);
  };
  const touch = (slot: Slot) => {
    slot.dirty = true;
    if (slot.timer !== undefined) return;
    const wait = slot.ready_at - clock.now();
    // A clock that stepped back must not silence a message.
    if (wait <= 0 || wait > 60_000) send(slot);
    else slot.timer = clock.after(wait, () => send(slot));
  };
  const append = (
    part: 'text' | 'reasoning',
    turn_id: string | undefined,
    { message_id, offset, text: more }: { message_id: string; offset: number; text: string },
  ) => {
    const { slot, text } = textSlot(turn_id, message_id);
    if (text.broken) return;
    if (offset !== text[part].length || offset + more.length > textMax) {
      text.broken = true;
      return;
    }
    text[part] += more;
    touch(slot);
  };

  return {
    start({ turn_id, payload }) {
      // Also when it is said again: what is known of its text stays.
      textSlot(turn_id, payload.message_id);
    },
    update({ turn_id, payload }) {
      const { slot, text } = textSlot(turn_id, payload.message_id);
      if (payload.text.length > textMax) return;
      text.text = payload.text;
      text.broken = false;
      touch(slot);
    },
    delta({ turn_id, payload }) {
      append('text', turn_id, payload);
    },
    reasoning({ turn_id, payload }) {
      append('reasoning', turn_id, payload);
    },
    snapshot({ turn_id, payload }) {
      for (const [key, slot] of slots) if (slot.turn_id === turn_id) drop(key);
      for (const message of payload.messages) {
        const { slot, text } = textSlot(turn_id, message.message_id);
        text.text = message.text;
        text.reasoning = message.reasoning ?? '';
        text.broken = false;
        // The snapshot itself carries this text: the next update is due after the pace.
        slot.ready_at = clock.now() + config.update_ms;
      }
    },
    put(key, turn_id, type, body) {
      const slot = slotOf(key, turn_id, () => ({ kind: 'frame', type, body }));
      slot.content = { kind: 'frame', type, body };
      touch(slot);
    },
    flush(turn_id, except) {
      for (const [key, slot] of slots) if (slot.dirty && slot.turn_id === turn_id && key !== messageKey(turn_id, except)) send(slot);
    },
    stop(turn_id, message_id) {
      drop(messageKey(turn_id, message_id));
    },
    endTurn(turn_id) {
      for (const [key, slot] of slots) if (slot.turn_id === turn_id) drop(key);
    },
    end() {
      for (const key of [...slots.keys()]) drop(key);
    },
    get size() {
      return slots.size;
    },
  };
}
