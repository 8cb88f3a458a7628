import { keyOf } from '@iris/client';
import { useEffect, useState } from 'preact/hooks';
import { type Pending, PendingFiles } from './attachments.js';
import type { Session } from './session.js';

let keys = 0;

export function Composer({ session }: { session: Session }) {
  const [text, setText] = useState('');
  const [files, setFiles] = useState<readonly Pending[]>([]);
  const lane = session.lane.value;
  const busy = lane && session.state.value.lanes.get(keyOf(lane))?.busy;
  const matches = /^\/\S*$/.test(text)
    ? session.commands.value
        .filter((command) => [command.name, ...(command.aliases ?? [])].some((name) => name.startsWith(text)))
        .slice(0, 8)
    : [];
  const change = (key: number, how: Partial<Pending>): void =>
    setFiles((now) => now.map((file) => (file.key === key ? { ...file, ...how } : file)));
  const add = (given: FileList | null | undefined): void => {
    for (const file of given ?? []) {
      const key = ++keys;
      setFiles((now) => [...now, { key, name: file.name, size: file.size, sent: 0 }]);
      session.client
        .upload(file, (sent) => change(key, { sent }))
        .then(
          (media_ref) => change(key, { media_ref }),
          (error: Error) => change(key, { failure: error.message }),
        );
    }
  };
  // Wherever it is dropped: a browser would leave the page and open the file.
  useEffect(() => {
    const over = (event: DragEvent): void => event.preventDefault();
    const drop = (event: DragEvent): void => {
      event.preventDefault();
      add(event.dataTransfer?.files);
    };
    addEventListener('dragover', over);
    addEventListener('drop', drop);
    return () => {
      removeEventListener('dragover', over);
      removeEventListener('drop', drop);
    };
  }, []);
  const ready = files.every(({ media_ref }) => media_ref !== undefined) && (text.trim() !== '' || files.length > 0);
  const send = (): void => {
    if (!ready) return;
    setText('');
    setFiles([]);
    const media_refs = files.flatMap(({ media_ref }) => media_ref ?? []);
    session.attempt(() => session.client.send(lane, text, media_refs.length === 0 ? {} : { media_refs }));
  };
  return (
    <form
      class="composer"
      onPaste={(event) => add(event.clipboardData?.files)}
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
      <PendingFiles files={files} drop={(key) => setFiles((now) => now.filter((file) => file.key !== key))} />
      <label class="attach" title="Attach a file">
        +
        <input
          type="file"
          multiple
          aria-label="Attach a file"
          onChange={(event) => {
            add(event.currentTarget.files);
            event.currentTarget.value = '';
          }}
        />
      </label>
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
      <button type="submit" class="primary" disabled={!ready}>
        Send
      </button>
    </form>
  );
}
