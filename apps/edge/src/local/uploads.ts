import type { RequestError, RequestId } from '@iris/protocol';
import type { Member } from '../connection.js';
import type { Upload } from './upload.js';

/** What a connection has on its way up. */
export interface Uploads {
  open: Upload | undefined;
  /** One that was refused: its bytes are swallowed, and its `end`, under the same `id`, is answered already. */
  refused: { readonly id: RequestId | undefined; readonly error: RequestError } | undefined;
  /** Those whose `end` has come and is not answered yet. */
  readonly ending: Set<Upload>;
  /** Requests that name an upload which is ending, and what came behind them. */
  held: { readonly for: readonly Upload[]; readonly run: () => void }[];
}

export const uploadsOf = (member: Member): Uploads =>
  (member.uploads ??= { open: undefined, refused: undefined, ending: new Set(), held: [] });

/**
 * A request that names an upload which is not stored yet waits for it, and all that come behind it wait too: they take effect in the order
 * in which they were sent.
 * @returns whether it waits
 */
export function holdBehindUploads(uploads: Uploads, refs: readonly string[], run: () => void): boolean {
  const named = [...uploads.ending].filter(({ media_ref }) => refs.includes(media_ref));
  if (named.length === 0 && uploads.held.length === 0) return false;
  uploads.held.push({ for: named, run });
  return true;
}

/** One has been answered: what waited for it alone goes on. */
export function release(uploads: Uploads): void {
  while (uploads.held[0]?.for.every((upload) => !uploads.ending.has(upload))) uploads.held.shift()!.run();
}
