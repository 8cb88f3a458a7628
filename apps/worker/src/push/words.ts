import { createHash } from 'node:crypto';
import { exceedsBytes, type Lane, laneKey, makeToken } from '@iris/protocol';
import type { PickerRow, PushFrameRow } from '@iris/store';
import type { Notice } from '../senders/sender.js';
import type { View } from './view.js';

/** Providers take 4 KB in all; encryption and base64 make a third more of it. */
const bodyBytes = 1_200;
const titleBytes = 200;
const choicesBytes = 600;
const choicesMax = 10;
const segments = new Intl.Segmenter(undefined, { granularity: 'grapheme' });

/** Bytes of it within a JSON string, which is how all of them are sent: a control character is six. */
const sizeOf = (text: string): number => Buffer.byteLength(JSON.stringify(text)) - 2;

/** The text, or as much of it as fits, cut between what people take for characters, and marked as cut. */
export function fitting(text: string, max: number): string {
  if (text.length <= max && sizeOf(text) <= max) return text;
  let kept = '';
  let left = max - 3;
  // Longer than that no character is worth looking for the end of.
  for (const { segment } of segments.segment(text.slice(0, max + 64))) {
    left -= sizeOf(segment);
    if (left < 0) break;
    kept += segment;
  }
  return `${kept}…`;
}

/** Names a lane for the providers: the same for every push of it, and it says nothing about it. 22 characters, base64url. */
export const tagOf = (view: Pick<View, 'tenant_id'>, lane: Lane): string =>
  createHash('sha256')
    .update(`${view.tenant_id}\n${laneKey(lane)}`)
    .digest('base64url')
    .slice(0, 22);

export interface Answering {
  readonly url: string;
  /** Unguessable, base64url. */
  secret(): string;
}

/**
 * What a push says. @param answering where pickers can be answered from the notification, if they can
 * @returns with `action`, a token that must be stored before it is given away
 */
export function noticeOf(
  view: View,
  frame: PushFrameRow,
  options: { cursor: number; now: number; age_ms: number; answering: Answering | undefined; lanes_before: number },
): { readonly notice: Notice; readonly action?: { readonly token: string; readonly picker: PickerRow } } {
  const picker = frame.picker_id === null ? undefined : view.pickers.get(frame.picker_id);
  const { title, body } = wordsOf(view, frame, picker);
  const choices = picker === undefined ? [] : choicesOf(picker);
  const { answering } = options;
  const answerable = answering !== undefined && picker !== undefined && choices.length > 0;
  const token = answerable ? makeToken('push', view.tenant_id, answering.secret()) : undefined;
  const notice: Notice = {
    cursor: options.cursor,
    tag: tagOf(view, frame),
    lanes_before: options.lanes_before,
    class: frame.class,
    chat_id: frame.chat_id,
    thread_id: frame.thread_id,
    message_id: frame.message_id,
    picker_id: frame.picker_id,
    title: fitting(title, titleBytes),
    body: fitting(body, bodyBytes),
    ts: frame.at,
    ttl_ms: Math.max(1_000, frame.at + options.age_ms - options.now),
    ...(answering !== undefined && token !== undefined ? { answers: { url: answering.url, token, choices } } : {}),
  };
  return token === undefined || picker === undefined ? { notice } : { notice, action: { token, picker } };
}

function wordsOf(view: View, frame: PushFrameRow, picker: PickerRow | undefined): { title: string; body: string } {
  const lane = view.names.get(laneKey(frame)) ?? 'Iris';
  if (picker !== undefined) {
    const { title, command, question, body } = picker.payload as { title?: string; command?: string; question?: string; body?: string };
    return { title: title ?? lane, body: command ?? question ?? body ?? lane };
  }
  if (frame.class === 'notification') return { title: frame.title || lane, body: frame.body ?? '' };
  const message = frame.message_id === null ? undefined : view.messages.get(frame.message_id);
  const [file] = message?.media ?? [];
  const kind = file?.kind;
  return { title: lane, body: message?.text.trim() || (typeof kind === 'string' ? `[${kind}]` : '') };
}

/** What one tap can answer. All of them, or none: a choice that is not shown could be the right one. */
function choicesOf({ type, payload }: PickerRow): { value: string; label: string }[] {
  if (type === 'picker.model' || (payload as { multi?: boolean }).multi === true) return [];
  const { choices = [] } = payload as { choices?: { value: string; label: string }[] };
  const given = choices.map(({ value, label }) => ({ value, label: fitting(label, 60) }));
  return given.length > choicesMax || exceedsBytes(JSON.stringify(given), choicesBytes) ? [] : given;
}
