import { createHash } from 'node:crypto';
import { createAsk, type OpenQuestions } from './ask.js';
import type { Clock } from './clock.js';
import { text_bytes_max, type Up, type UpBody } from './frame.js';
import type { Journal } from './journal.js';
import type { Link } from './link.js';
import { LinkError, type Requests } from './requests.js';
import { cleanText, parts } from './text.js';
import type { Answer, Channel, Lane, MediaEntry } from './types.js';

/** What all lanes of one agent share. */
export interface LaneContext {
  readonly clock: Clock;
  readonly journal: Journal;
  readonly link: Pick<Link, 'skew_ms' | 'buffered'>;
  readonly requests: Requests;
  readonly questions: OpenQuestions;
  /** Puts bytes where the gateway said. Rejects when they were not taken. */
  readonly putBytes: (url: string, bytes: Uint8Array, mime: string) => Promise<void>;
  newId(prefix: string): string;
  defaultChat(): string | undefined;
}

/** Where and as part of what a lane speaks. */
export interface LanePlace {
  readonly chat_id: string | undefined;
  readonly thread_id: string | null;
  readonly turn_id?: string;
  /** Before each durable frame: what was said earlier goes first. */
  before?(): void;
  /** While this says why, nothing is said any more. */
  over?(): Exclude<Answer<unknown>['reason'], 'answered'> | undefined;
  asking?(picker_id: string, isOpen: boolean, close: (reason: 'expired' | 'turn_ended' | 'stopped' | 'withdrawn') => void): void;
}

export interface LaneParts {
  readonly lane: Lane;
  keep(body: UpBody): void;
  pass(body: UpBody): boolean;
}

export function createLane(context: LaneContext, place: LanePlace): LaneParts {
  const { clock, journal, requests } = context;
  const address = () => {
    const chat_id = place.chat_id ?? context.defaultChat();
    return {
      ...(chat_id === undefined ? {} : { chat_id }),
      thread_id: place.thread_id,
      ...(place.turn_id === undefined ? {} : { turn_id: place.turn_id }),
    };
  };
  const over = () => place.over?.();
  const keep = (body: UpBody): void => {
    if (over()) return;
    place.before?.();
    journal.keep({ ...body, ...address() } as Up);
  };
  const pass = (body: UpBody): boolean => !over() && journal.pass({ ...body, ...address() } as Up);
  const ask = (body: UpBody, durable: boolean) => {
    const { turn_id: _, ...lane } = address();
    return requests.ask({ ...body, ...lane } as Up, { durable });
  };

  const lane: Lane = {
    get chat_id() {
      return place.chat_id ?? context.defaultChat();
    },
    thread_id: place.thread_id,
    ask: createAsk({
      clock,
      open: context.questions,
      newId: () => context.newId('p'),
      keep,
      over,
      skew_ms: () => context.link.skew_ms,
      ...(place.asking ? { asking: place.asking } : {}),
    }),
    say(text, more = {}) {
      const { message_id: own, role = 'assistant', media, reasoning, reply_to, ...rest } = more;
      const pieces = parts(cleanText(text), text_bytes_max);
      const ids = pieces.map((_, i) => (own === undefined ? context.newId('m') : i === 0 ? own : `${own}.${i + 1}`));
      pieces.forEach((piece, i) => {
        const first = i === 0;
        const last = i === pieces.length - 1;
        keep({
          type: 'message',
          payload: {
            message_id: ids[i]!,
            role,
            text: piece,
            ...(first && reasoning !== undefined ? { reasoning: cleanText(reasoning) } : {}),
            ...(first && reply_to !== undefined ? { reply_to } : {}),
            ...(last && media !== undefined ? { media: [...media] } : {}),
            ...(last ? rest : {}),
          },
        });
      });
      return ids[0]!;
    },
    commentary: (text) => keep({ type: 'commentary', payload: { message_id: context.newId('c'), text: cleanText(text) } }),
    notify: ({ kind = 'generic', title, body }) => keep({ type: 'notification', payload: { kind, title, body, ts: clock.now() } }),
    typing: (on) => void pass(on ? { type: 'typing', payload: { on } } : { type: 'typing.stop', payload: {} }),
    offer: (media) => keep({ type: 'media.offer', payload: media }),
    async upload({ kind, mime, bytes, filename }) {
      const sha256 = createHash('sha256').update(bytes).digest('hex');
      const entry = { kind, mime, size: bytes.length, sha256, ...(filename === undefined ? {} : { filename }) };
      const grant = await ask({ type: 'media.request', payload: entry }, false);
      if (grant.type !== 'media.grant') throw unexpected('media.request', grant.type);
      await context.putBytes(grant.payload.url, bytes, mime);
      return { media_id: grant.payload.media_id, ...entry } satisfies MediaEntry;
    },
    delete: (message_ids) => keep({ type: 'message.delete', payload: { message_ids: [...message_ids] } }),
    async rename(name, { only_if_current } = {}) {
      await ask({ type: 'channel.rename', payload: { name, ...(only_if_current === undefined ? {} : { only_if_current }) } }, true);
    },
    async createThread(name) {
      const { chat_id } = address();
      const answer = await requests.ask(
        { type: 'channel.create', payload: { name, kind: 'thread', ...(chat_id === undefined ? {} : { parent_chat_id: chat_id }) } },
        { durable: true },
      );
      return created(answer);
    },
    async history(options = {}) {
      const answer = await ask({ type: 'history', payload: { ...options } }, false);
      if (answer.type !== 'history') throw unexpected('history', answer.type);
      return answer.payload;
    },
  };
  return { lane, keep, pass };
}

/** The channel that a `channel.create` made. */
export function created(answer: { type: string; payload: unknown }): Channel {
  if (answer.type !== 'channel.created') throw unexpected('channel.create', answer.type);
  return answer.payload as Channel;
}

export const unexpected = (asked: string, got: string): LinkError => new LinkError('internal', `${asked} was answered by ${got}`);
