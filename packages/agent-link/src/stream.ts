import type { Clock } from './clock.js';
import { text_bytes_max, type UpBody } from './frame.js';
import { byteLength, cleanText, endsHalf, fitting } from './text.js';
import type { Role, StopMore, Stream } from './types.js';

/** What a stream needs of its turn. */
export interface StreamSink {
  readonly clock: Clock;
  /** A new id for a message. */
  newId(): string;
  /** The turn says nothing more: a stream that is opened now carries nothing. */
  over(): boolean;
  keep(frame: UpBody): void;
  /** False when nobody hears it. */
  pass(frame: UpBody): boolean;
  /** The network takes no more for now: wait with what the next delta can carry as well. */
  congested(): boolean;
  /** What every finished message of the turn carries. */
  more(): StopMore;
}

export interface OpenStream extends Stream {
  /** What is written goes out now. */
  flush(): void;
  /** For `turn.snapshot`; from here on deltas continue behind it. Undefined when it is over or nothing was written. */
  snapshot(): { message_id: string; role: Role; text: string; reasoning?: string } | undefined;
}

const congested_ms = 100;

/** Gathers what is written in one turn of the loop into one delta; the whole text goes with the stop. */
export function openStream(sink: StreamSink, role: Role, onOver: (stream: OpenStream) => void): OpenStream {
  let message_id = sink.newId();
  let started = false;
  let over = sink.over();
  let scheduled = false;
  let text = '';
  let bytes = 0;
  let sent = 0;
  let reasoning = '';
  let reasoningSent = 0;
  /** First halves of characters that wait for their second. */
  let half = { text: '', reasoning: '' };

  const start = () => {
    if (started) return;
    started = true;
    sink.keep({ type: 'message.start', payload: { message_id, role } });
  };
  const later = (wait: (run: () => void) => void) => {
    if (scheduled) return;
    scheduled = true;
    wait(() => {
      scheduled = false;
      flush();
    });
  };
  const schedule = () => later((run) => sink.clock.soon(run));
  const flush = () => {
    if (over || (sent === text.length && reasoningSent === reasoning.length)) return;
    if (sink.congested()) return later((run) => void sink.clock.after(congested_ms, run));
    if (reasoningSent < reasoning.length) {
      const payload = { message_id, offset: reasoningSent, text: reasoning.slice(reasoningSent) };
      if (sink.pass({ type: 'reasoning.delta', payload })) reasoningSent = reasoning.length;
    }
    if (sent < text.length) {
      const payload = { message_id, offset: sent, text: text.slice(sent) };
      if (sink.pass({ type: 'message.delta', payload })) sent = text.length;
    }
  };
  const whole = (kind: 'text' | 'reasoning', chunk: string): string => {
    const joined = half[kind] + chunk;
    const cut = endsHalf(joined) ? joined.length - 1 : joined.length;
    half = { ...half, [kind]: joined.slice(cut) };
    return cleanText(joined.slice(0, cut));
  };
  const finish = (more: StopMore | undefined) => {
    const { media, ...shared } = { ...sink.more(), ...more };
    sink.keep({
      type: 'message.stop',
      payload: {
        message_id,
        final_text: text,
        ...(reasoning === '' ? {} : { reasoning }),
        ...shared,
        ...(media === undefined ? {} : { media: [...media] }),
      },
    });
  };

  const stream: OpenStream = {
    get message_id() {
      return message_id;
    },
    write(chunk) {
      if (over) return;
      let rest = whole('text', chunk);
      if (rest === '') return;
      start();
      for (;;) {
        const room = text_bytes_max - bytes;
        const units = fitting(rest, room);
        text += rest.slice(0, units);
        bytes += byteLength(rest.slice(0, units));
        rest = rest.slice(units);
        if (rest === '') break;
        finish(undefined);
        message_id = sink.newId();
        text = '';
        bytes = 0;
        sent = 0;
        reasoning = '';
        reasoningSent = 0;
        started = false;
        start();
      }
      schedule();
    },
    reason(chunk) {
      if (over) return;
      const more = whole('reasoning', chunk);
      const room = text_bytes_max - byteLength(reasoning);
      const taken = more.slice(0, fitting(more, room));
      if (taken === '') return;
      start();
      reasoning += taken;
      schedule();
    },
    replace(next) {
      if (over) return;
      start();
      half = { ...half, text: '' };
      const clean = cleanText(next);
      text = clean.slice(0, fitting(clean, text_bytes_max));
      bytes = byteLength(text);
      if (sink.pass({ type: 'message.update', payload: { message_id, text } })) sent = text.length;
      else sent = 0;
    },
    stop(more) {
      if (over) return;
      const tail = cleanText(half.text);
      half = { text: '', reasoning: '' };
      if (tail !== '') stream.write(tail);
      over = true;
      onOver(stream);
      // What is still unsent goes with the whole text.
      if (started) finish(more);
    },
    flush,
    snapshot() {
      if (over || !started) return undefined;
      sent = text.length;
      reasoningSent = reasoning.length;
      return { message_id, role, text, ...(reasoning === '' ? {} : { reasoning }) };
    },
  };
  return stream;
}
