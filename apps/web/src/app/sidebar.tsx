import { type Channel, keyOf } from '@iris/client';
import type { Session } from './session.js';

export function Sidebar({ session }: { session: Session }) {
  const { channels, lanes } = session.state.value;
  const open = session.lane.value;
  const threads = (channel: Channel) => channels.filter((other) => other.thread_id !== undefined && other.chat_id === channel.chat_id);
  const row = (channel: Channel) => {
    const lane = { chat_id: channel.chat_id, thread_id: channel.thread_id ?? null };
    const view = lanes.get(keyOf(lane));
    return (
      <button
        type="button"
        key={keyOf(lane)}
        class={`channel ${channel.thread_id === undefined ? '' : 'thread'} ${open && keyOf(open) === keyOf(lane) ? 'open' : ''}`}
        onClick={() => session.show(lane)}
      >
        <span class="name">{channel.name}</span>
        {view?.busy && <span class="dot" title="the agent works here" />}
        {view !== undefined && view.unread > 0 && !(open && keyOf(open) === keyOf(lane)) && <span class="unread">{view.unread}</span>}
      </button>
    );
  };
  return (
    <nav class="sidebar" aria-label="Channels">
      <header>
        <strong>Iris</strong>
        <span class={`line ${session.connection.value.kind}`}>{session.connection.value.kind}</span>
      </header>
      {session.push.value === 'default' && (
        <button type="button" class="push" onClick={() => session.askForPush()}>
          Notify me when this page is closed
        </button>
      )}
      <div class="channels">
        {channels
          .filter((channel) => channel.thread_id === undefined)
          .map((channel) => (
            <div key={channel.chat_id}>
              {row(channel)}
              {threads(channel).map(row)}
            </div>
          ))}
      </div>
      <form
        class="new"
        onSubmit={(event) => {
          event.preventDefault();
          const form = event.currentTarget;
          const name = String(new FormData(form).get('name')).trim();
          if (name === '') return;
          session.attempt(async () => {
            const made = await session.client.createChannel(name);
            session.show({ chat_id: made.chat_id, thread_id: null });
            form.reset();
          });
        }}
      >
        <input name="name" maxLength={128} placeholder="New channel" aria-label="Name of a new channel" autocomplete="off" />
        <button type="submit" aria-label="Create the channel">
          +
        </button>
      </form>
    </nav>
  );
}
