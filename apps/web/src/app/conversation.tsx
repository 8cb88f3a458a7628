import { emptyLane, type Item, keyOf } from '@iris/client';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { Attachment } from './attachments.js';
import { MessageRow } from './message.js';
import { PickerRow } from './picker.js';
import type { Session } from './session.js';
import { ToolRow } from './tool.js';

export function Conversation({ session }: { session: Session }) {
  const lane = session.lane.value;
  const view = (lane && session.state.value.lanes.get(keyOf(lane))) ?? emptyLane;
  const scroller = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  const height = useRef(0);

  useLayoutEffect(() => {
    const box = scroller.current;
    if (!box) return;
    // Follow the end while the reader is there; keep the place when older messages come in above.
    if (atEnd.current) box.scrollTop = box.scrollHeight;
    else if (box.scrollTop < 80 && height.current > 0) box.scrollTop += box.scrollHeight - height.current;
    height.current = box.scrollHeight;
  }, [view]);
  useLayoutEffect(() => {
    atEnd.current = true;
  }, [lane && keyOf(lane)]);

  return (
    <div
      class="conversation"
      ref={scroller}
      onScroll={(event) => {
        const box = event.currentTarget;
        atEnd.current = box.scrollHeight - box.scrollTop - box.clientHeight < 60;
        if (box.scrollTop < 80 && view.has_more && lane) session.attempt(() => session.client.loadHistory(lane));
      }}
    >
      {view.has_more === false && view.items.length === 0 && <p class="empty">Say something. `/demo` shows everything the agent can do.</p>}
      {view.items.map((item) => (
        <Row key={item.key} item={item} session={session} />
      ))}
      <Activity busy={view.busy} typing={view.typing} />
    </div>
  );
}

function Row({ item, session }: { item: Item; session: Session }) {
  switch (item.kind) {
    case 'message':
      return <MessageRow item={item} session={session} />;
    case 'commentary':
      return <div class="commentary">{item.text}</div>;
    case 'tool':
      return <ToolRow item={item} />;
    case 'picker':
      return <PickerRow item={item} session={session} />;
    case 'notice':
      return (
        <div class={`notice ${item.notice.kind}`}>
          <strong>{item.notice.title}</strong> {item.notice.body}
        </div>
      );
    case 'media':
      return (
        <div class="notice">
          <Attachment entry={item.media} session={session} />
        </div>
      );
  }
}

const activities = {
  processing: 'thinking…',
  tool: 'using a tool…',
  waiting_input: 'waiting for your answer',
  cron: 'working on a schedule…',
} as const;

function Activity({ busy, typing }: { busy: keyof typeof activities | undefined; typing: boolean }) {
  if (!busy && !typing) return null;
  return (
    <div class="activity" role="status">
      <span class="dots" aria-hidden="true" />
      {busy ? activities[busy] : 'typing…'}
    </div>
  );
}
