import type { FinishedMessage } from '@iris/client';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { thumbHashToDataURL } from 'thumbhash';
import type { Session } from './session.js';

type Entry = NonNullable<FinishedMessage['media']>[number];

/** A file on its way up. */
export interface Pending {
  readonly key: number;
  readonly name: string;
  readonly size: number;
  readonly sent: number;
  readonly media_ref?: string;
  readonly failure?: string;
}

export function PendingFiles({ files, drop }: { files: readonly Pending[]; drop(key: number): void }) {
  if (files.length === 0) return null;
  return (
    <ul class="pending">
      {files.map((file) => (
        <li key={file.key} class={file.media_ref ? 'stored' : file.failure ? 'failed' : 'sending'}>
          <span>{file.name}</span>
          {file.failure === undefined && file.media_ref === undefined && <progress max={file.size} value={file.sent} />}
          {file.failure !== undefined && <span class="failure">{file.failure}</span>}
          <button type="button" aria-label={`Leave out ${file.name}`} onClick={() => drop(file.key)}>
            ×
          </button>
        </li>
      ))}
    </ul>
  );
}

export function Attachments({ media, session }: { media: readonly Entry[]; session: Session }) {
  return (
    <ul class="attachments">
      {media.map((entry) => (
        <li key={entry.media_id}>
          <Attachment entry={entry} session={session} />
        </li>
      ))}
    </ul>
  );
}

/** What of a picture came with its message: a few bytes that look like it, until its preview is there. */
const blurred = (thumbhash: string): string => thumbHashToDataURL(Uint8Array.from(atob(thumbhash), (one) => one.charCodeAt(0)));

/** The preview of a picture at once, the picture itself when it is asked for; of everything else a name, and its bytes when asked for. */
export function Attachment({ entry, session }: { entry: Entry; session: Session }) {
  const [address, setAddress] = useState<string | undefined>();
  const [whole, setWhole] = useState(false);
  const shown = entry.kind === 'image' && (whole || entry.thumb_media_id !== undefined);
  const placeholder = useMemo(() => entry.thumbhash && blurred(entry.thumbhash), [entry.thumbhash]);
  const wanted = whole ? entry.media_id : entry.thumb_media_id;
  useEffect(() => {
    if (!shown || wanted === undefined) return;
    let made: string | undefined;
    let gone = false;
    session.attempt(async () => {
      const bytes = await session.client.pull(wanted);
      if (gone) return;
      // The type is the gateway's word, and only of pictures: nothing else is shown.
      made = URL.createObjectURL(new Blob([bytes], { type: whole ? entry.mime : 'image/webp' }));
      setAddress(made);
    });
    return () => {
      gone = true;
      if (made !== undefined) URL.revokeObjectURL(made);
    };
  }, [wanted, shown]);
  const save = (): void =>
    session.attempt(async () => {
      const url = URL.createObjectURL(new Blob([await session.client.pull(entry.media_id)], { type: 'application/octet-stream' }));
      const link = document.createElement('a');
      link.href = url;
      link.download = entry.filename ?? 'file';
      link.click();
      setTimeout(() => URL.revokeObjectURL(url), 60_000);
    });
  if (shown)
    return (
      <button
        type="button"
        class={whole ? 'picture whole' : 'picture'}
        aria-label={entry.filename ?? 'picture'}
        onClick={() => setWhole(!whole)}
      >
        {address !== undefined ? (
          <img src={address} alt={entry.filename ?? ''} />
        ) : placeholder ? (
          <img class="blurred" src={placeholder} alt="" />
        ) : (
          <span class="dots" aria-hidden="true" />
        )}
      </button>
    );
  return (
    <button type="button" class="file" onClick={save}>
      {entry.filename ?? entry.media_id} · {entry.mime} · {entry.size} bytes
    </button>
  );
}
