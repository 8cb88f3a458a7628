import { keyOf } from '@iris/client';
import { useState } from 'preact/hooks';
import type { Session } from './session.js';

export function Composer({ session }: { session: Session }) {
  const [text, setText] = useState('');
  const lane = session.lane.value;
  const busy = lane && session.state.value.lanes.get(keyOf(lane))?.busy;
  const matches = /^\/\S*$/.test(text)
    ? session.commands.value
        .filter((command) => [command.name, ...(command.aliases ?? [])].some((name) => name.startsWith(text)))
        .slice(0, 8)
    : [];
  const send = (): void => {
    if (text.trim() === '') return;
    setText('');
    session.attempt(() => session.client.send(lane, text));
  };
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      {matches.length > 0 && (
        <ul class="commands">
          {matches.map((command) => (
            <li key={command.name}>
              <button type="button" onClick={() => setText(`${command.name} `)}>
                <code>
                  {command.name} {command.args_hint}
                </code>
                <span>{command.description}</span>
              </button>
            </li>
          ))}
        </ul>
      )}
      <textarea
        rows={Math.min(8, text.split('\n').length)}
        value={text}
        dir="auto"
        placeholder="Message"
        aria-label="Message"
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
            event.preventDefault();
            send();
          }
        }}
      />
      {busy && lane && (
        <button type="button" class="stop" onClick={() => session.attempt(() => session.client.stop(lane))}>
          Stop
        </button>
      )}
      {busy && lane && text.trim() !== '' && (
        <button
          type="button"
          title="Say it to the running turn"
          onClick={() => {
            setText('');
            session.attempt(() => session.client.steer(lane, text));
          }}
        >
          Steer
        </button>
      )}
      <button type="submit" class="primary" disabled={text.trim() === ''}>
        Send
      </button>
    </form>
  );
}
