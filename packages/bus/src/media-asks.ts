import type { MediaId, ObjectId } from '@iris/protocol';

/**
 * What an edge asks the session about files: requests like any other on hop one, but not frames of a peer. The edge keeps the bytes,
 * the session the rows. The body of a request and of its answer is JSON; what is refused is answered with an `error` frame.
 */
export interface MediaAsks {
  /** An upload begins. The edge has made up where its bytes are to be. */
  readonly 'media.begin': { readonly ask: MediaBegin; readonly answer: MediaBegun };
  /** Its bytes are stored. */
  readonly 'media.commit': { readonly ask: MediaCommit; readonly answer: MediaCommitted };
  /** They will not be. */
  readonly 'media.abandon': { readonly ask: { readonly media_id: MediaId }; readonly answer: { readonly ok: true } };
  /** A file comes over HTTP, or from its beginning again; with `object_id` its bytes begin anew, there. */
  readonly 'media.accept': { readonly ask: MediaAccept; readonly answer: MediaAccepted };
  /** Where the bytes of a file are. */
  readonly 'media.find': { readonly ask: MediaFind; readonly answer: MediaFound };
}
export type MediaAsk = keyof MediaAsks;

export interface MediaBegin {
  readonly device_id: string;
  readonly media_id: MediaId;
  readonly object_id: ObjectId;
  readonly media_ref: string;
  readonly kind: string;
  readonly mime: string;
  readonly size: number;
  readonly filename?: string;
  /** What the bytes must have, when that was said. */
  readonly sha256?: string;
  readonly resume: boolean;
}
export interface MediaBegun {
  /** Those of an upload that is gone on with, or those that were asked for. */
  readonly media_id: MediaId;
  readonly object_id: ObjectId;
  /** The upload is gone on with. */
  readonly resumed: boolean;
  /** It was complete already: the hash of its bytes. */
  readonly sha256?: string;
}
export interface MediaCommit {
  readonly media_id: MediaId;
  readonly object_id: ObjectId;
  readonly size: number;
  readonly sha256: string;
}
export interface MediaCommitted {
  readonly sha256: string;
}
export interface MediaAccept {
  readonly media_id: string;
  readonly object_id?: ObjectId;
  /** Whom the link was given to. Refused with `auth` when that was revoked. */
  readonly by?: MediaLinkHolder;
}
/** A device, or an agent: links to upload with end with their token, and with the device. */
export interface MediaLinkHolder {
  readonly token_id: string;
  readonly device_id?: string;
}
export interface MediaAccepted {
  readonly object_id: ObjectId;
  readonly size: number;
  /** What the bytes must have, when that was said. */
  readonly sha256?: string;
  /** They are here already. */
  readonly complete?: true;
}
export interface MediaFind {
  readonly media_id: string;
  /** Who asks: sees its own uploads before they are in a message. */
  readonly device_id?: string;
}
export interface MediaFound {
  readonly object_id: ObjectId;
  /** A media entry as devices see it. */
  readonly entry: { readonly media_id: string; readonly kind: string; readonly mime: string; readonly size: number } & Record<
    string,
    unknown
  >;
}

const asks: ReadonlySet<string> = new Set<MediaAsk>(['media.begin', 'media.commit', 'media.abandon', 'media.accept', 'media.find']);
export const isMediaAsk = (type: string): type is MediaAsk => asks.has(type);
