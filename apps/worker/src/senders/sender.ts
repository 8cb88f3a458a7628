import type { Cursor } from '@iris/protocol';
import type { PushClass, PushContent, PushKind, PushTargetRow } from '@iris/store';

/** What a push says. How much of it a provider is told is the {@link PushContent}'s word. */
export interface Notice {
  /** Names the push: the same again is the same one, and is shown once. */
  readonly cursor: Cursor;
  /** Names the lane for this device: a newer push of the lane takes the place of the shown one. */
  readonly tag: string;
  /** Of how many other lanes the device was pushed first, and has not come since. */
  readonly lanes_before: number;
  readonly class: PushClass;
  readonly chat_id: string;
  readonly thread_id: string | null;
  readonly message_id: string | null;
  readonly picker_id: string | null;
  readonly title: string;
  readonly body: string;
  readonly ts: number;
  /** Milliseconds for which it is worth anything still. */
  readonly ttl_ms: number;
  readonly answers?: {
    readonly url: string;
    /** Good for one answer. */
    readonly token: string;
    readonly choices: readonly { readonly value: string; readonly label: string }[];
  };
}

/** What a provider says. `dead`: nobody is at that address any more. `refused`: this push will never be taken. `retry`: later, perhaps. */
export interface Verdict {
  readonly is: 'accepted' | 'dead' | 'refused' | 'retry';
  /** In few words, for the ledger. Never a credential. */
  readonly answer: string;
  /** Not before so many milliseconds. */
  readonly after_ms?: number;
}

/** Someone who carries pushes. Speaks the provider's wire format; never rejects. */
export interface Sender {
  readonly kind: PushKind;
  /** The server it is sent to: each has a line of its own. */
  server(target: PushTargetRow): string;
  send(target: PushTargetRow, notice: Notice, content: PushContent): Promise<Verdict>;
  /** Takes a shown notification back, without a sound. */
  withdraw(target: PushTargetRow, shown: Pick<Notice, 'tag' | 'cursor' | 'lanes_before'>): Promise<Verdict>;
}

/** `Retry-After` in milliseconds: seconds, or a date. */
export function retryAfter(value: string | undefined, now: number): { after_ms?: number } {
  if (value === undefined || value.trim() === '') return {};
  const seconds = /^\d+$/.test(value.trim()) ? Number(value) * 1_000 : Date.parse(value) - now;
  return Number.isFinite(seconds) && seconds > 0 ? { after_ms: Math.min(seconds, 24 * 3600 * 1000) } : {};
}
