import type { Command, HistoryPage, Turn } from '@iris/agent-link';
import type { ChatMessage } from './endpoint.js';

export type PastMessage = HistoryPage['messages'][number];

export interface PastLimits {
  /** UTF-16 code units of all messages together. */
  readonly chars: number;
  /** The lane begins anew with this message of a person. */
  isReset(text: string): boolean;
  /** Not for the model: words to the runner. */
  isCommand(text: string): boolean;
}

export function pastLimits(chars: number, commands: () => readonly Command[]): PastLimits {
  const first = (text: string): string => /^\s*(\S*)/.exec(text)?.[1]?.toLowerCase() ?? '';
  const called = (text: string, only?: string): boolean =>
    commands().some(({ name, aliases = [] }) => (only === undefined || name === only) && [name, ...aliases].includes(first(text)));
  return { chars, isReset: (text) => called(text, '/new'), isCommand: (text) => called(text) };
}

const page_size = 100;
/** However short messages are. */
const messages_max = 1_000;

/**
 * What the model is to know: the lane's messages of people and of the agent, oldest first, as much as fits, back to the last `/new`.
 * Without the turn's own message, and without what people have written after it, which waits for a turn of its own.
 */
export async function readPast(turn: Pick<Turn, 'history' | 'message'>, limits: PastLimits): Promise<PastMessage[]> {
  const kept: PastMessage[] = [];
  let chars = 0;
  let seen = 0;
  let own = false;
  let before: string | undefined;
  for (;;) {
    const page = await turn.history({ limit: page_size, ...(before === undefined ? {} : { before_message_id: before }) });
    // Newest first; on the first page the turn's own message is somewhere, with answers to earlier ones behind it.
    if (before === undefined && !page.messages.some(({ message_id }) => message_id === turn.message.message_id)) own = true;
    for (const message of [...page.messages].reverse()) {
      if (message.message_id === turn.message.message_id) {
        own = true;
        continue;
      }
      if (message.role === 'user') {
        if (!own) continue;
        if (limits.isReset(message.text)) return kept.reverse();
        if (limits.isCommand(message.text)) continue;
      } else if (message.role !== 'assistant') continue;
      chars += message.text.length;
      if (chars > limits.chars) return kept.reverse();
      kept.push(message);
    }
    seen += page.messages.length;
    before = page.oldest_message_id ?? page.messages[0]?.message_id;
    if (!page.has_more || before === undefined || seen >= messages_max) return kept.reverse();
  }
}

/** As models like it: a person begins, and the two take turns. */
export function conversation(past: readonly PastMessage[]): ChatMessage[] {
  const messages: { role: 'user' | 'assistant'; content: string }[] = [];
  for (const { role, text, media = [] } of past) {
    const files = media.map(({ kind, filename }) => `[${kind}${filename === undefined ? '' : `: ${filename}`}]`).join(' ');
    const content = [text, files].filter((part) => part.trim() !== '').join('\n');
    if (content === '') continue;
    const last = messages.at(-1);
    const side = role === 'user' ? 'user' : 'assistant';
    if (last === undefined && side === 'assistant') continue;
    if (last?.role === side) last.content += `\n\n${content}`;
    else messages.push({ role: side, content });
  }
  return messages;
}
