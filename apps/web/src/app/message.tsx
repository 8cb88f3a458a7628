import type { Item } from '@iris/client';
import { useMemo } from 'preact/hooks';
import { Attachments } from './attachments.js';
import { renderMarkdown } from './markdown.js';
import type { Session } from './session.js';

type MessageItem = Extract<Item, { kind: 'message' }>;

export function MessageRow({ item, session }: { item: MessageItem; session: Session }) {
  const { message, state } = item;
  return (
    <article class={`message ${message.role} ${state}`} data-message-id={message.message_id}>
      {message.reasoning && (
        <details class="reasoning">
          <summary>Reasoning</summary>
          <Markdown text={message.reasoning} />
        </details>
      )}
      <Markdown text={message.text} />
      {message.media !== undefined && message.media.length > 0 && <Attachments media={message.media} session={session} />}
      {state === 'streaming' && message.text === '' && <span class="dots" aria-hidden="true" />}
      <footer>
        {message.interrupted && <span class="tag">interrupted</span>}
        {message.steer && <span class="tag">steered</span>}
        <Footer item={item} />
        {message.role === 'user' && <Ticks item={item} />}
        {state === 'done' && (
          <button
            type="button"
            class="remove"
            aria-label="Delete this message"
            onClick={() => {
              const lane = session.lane.value;
              if (lane) session.attempt(() => session.client.remove(lane, [message.message_id]));
            }}
          >
            ×
          </button>
        )}
      </footer>
      {item.failure !== undefined && <p class="failure">Not sent: {item.failure}</p>}
    </article>
  );
}

function Markdown({ text }: { text: string }) {
  const html = useMemo(() => renderMarkdown(text), [text]);
  // `renderMarkdown` sanitises; the browser test attacks it.
  return <div class="text" dir="auto" dangerouslySetInnerHTML={{ __html: html }} />;
}

function Footer({ item }: { item: MessageItem }) {
  const { ts, runtime, model } = item.message;
  const parts: string[] = [];
  const name = runtime?.model ?? model;
  if (name) parts.push(name);
  if (runtime?.context_pct !== undefined) parts.push(`${runtime.context_pct} % context`);
  if (runtime?.latency !== undefined) parts.push(`${runtime.latency.toFixed(1)} s`);
  if (runtime?.cost !== undefined) parts.push(`$${runtime.cost.toFixed(4)}`);
  if (ts > 0) parts.push(new Date(ts).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' }));
  return <span class="runtime">{parts.join(' · ')}</span>;
}

function Ticks({ item }: { item: MessageItem }) {
  const [mark, title] = item.received
    ? ['✓✓', 'the agent has it']
    : item.state === 'done'
      ? ['✓', 'the gateway has it']
      : item.state === 'failed'
        ? ['!', 'not sent']
        : ['…', 'sending'];
  return (
    <span class="ticks" title={title}>
      {mark}
    </span>
  );
}
