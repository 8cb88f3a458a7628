import type { ObjectId, TenantId } from '@iris/protocol';

/**
 * Bytes of files, by tenant and object id. A file is whole or not there: what was not finished is never read.
 * It knows no names and no types; those are rows in Postgres.
 */
export interface MediaStore {
  /**
   * Start a file. Nothing is visible until {@link MediaWriter.finish}.
   * @param options.keep what is stored of it outlives {@link MediaWriter.suspend} and the end of the process, for {@link resume}
   */
  open(tenant_id: TenantId, object_id: ObjectId, options?: { keep: boolean }): Promise<MediaWriter>;
  /** Go on with a file that was opened with `keep`, behind the `offset` bytes of it that are stored; undefined when nothing is. */
  resume(tenant_id: TenantId, object_id: ObjectId): Promise<{ readonly writer: MediaWriter; readonly offset: number } | undefined>;
  /**
   * Bytes from `offset`, at most `length`; undefined when there is no such file. The stream fails rather than end short.
   * @param range.lent each piece is the reader's until it asks for the next one only: the memory may be used again
   */
  read(
    tenant_id: TenantId,
    object_id: ObjectId,
    range?: { offset: number; length?: number; lent?: boolean },
  ): Promise<MediaReader | undefined>;
  stat(tenant_id: TenantId, object_id: ObjectId): Promise<{ size: number } | undefined>;
  /** No error when it is not there. */
  remove(tenant_id: TenantId, object_id: ObjectId): Promise<void>;
  removeTenant(tenant_id: TenantId): Promise<void>;
  /** Abort what was opened before `before_ms` and never finished. Returns how many. */
  sweep(before_ms: number): Promise<number>;
  close(): Promise<void>;
}

export interface MediaWriter {
  /**
   * Resolves when the caller may append more, and use the chunk again: the writer holds a bounded number of bytes. Several that have
   * gathered go in one step.
   */
  append(chunk: Uint8Array | readonly Uint8Array[]): Promise<void>;
  /**
   * Take a chunk in this very call, without a copy in between: when all that was appended before is taken, and there is memory for it.
   * @returns whether it is taken; when not, it is to be appended
   */
  appendNow(chunk: Uint8Array): boolean;
  /**
   * All bytes are stored and visible when it resolves. After a failure, of this or of `append`, nothing is kept.
   * @param sha256 what the bytes must have, in lower-case hexadecimal; others reject with {@link WrongSha256}
   */
  finish(sha256?: string): Promise<{ size: number; sha256: string }>;
  /** Forget everything. Never fails. */
  abort(): Promise<void>;
  /** End here, and leave what is stored for {@link MediaStore.resume}, when it was opened with `keep`; else as {@link abort}. Never fails. */
  suspend(): Promise<void>;
}

export interface MediaReader {
  /** Of the whole file, whatever was asked for. */
  readonly size: number;
  /** Nothing is held open before the first is asked for, nor after the reader turned away. None beyond the end. */
  readonly bytes: AsyncIterable<Uint8Array>;
}

/** The bytes are not those that they were said to be. */
export class WrongSha256 extends Error {
  override readonly name = 'WrongSha256';
}

/** The disk is full, or what may wait on it for a slow server is. Later there may be room. */
export class NoRoom extends Error {
  override readonly name = 'NoRoom';
}
