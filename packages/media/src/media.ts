import type { MediaId, TenantId } from '@iris/protocol';

/**
 * Bytes of files, by tenant and media id. A file is whole or not there: what was not finished is never read.
 * It knows no names and no types; those are rows in Postgres.
 */
export interface MediaStore {
  /** Start a file. Nothing is visible until {@link MediaWriter.finish}. */
  open(tenant_id: TenantId, media_id: MediaId): Promise<MediaWriter>;
  /** Bytes from `offset`, at most `length`; undefined when there is no such file. The stream fails rather than end short. */
  read(tenant_id: TenantId, media_id: MediaId, range?: { offset: number; length?: number }): Promise<MediaReader | undefined>;
  stat(tenant_id: TenantId, media_id: MediaId): Promise<{ size: number } | undefined>;
  /** No error when it is not there. */
  remove(tenant_id: TenantId, media_id: MediaId): Promise<void>;
  removeTenant(tenant_id: TenantId): Promise<void>;
  /** Abort what was opened before `before_ms` and never finished. Returns how many. */
  sweep(before_ms: number): Promise<number>;
  close(): Promise<void>;
}

export interface MediaWriter {
  /** Resolves when the caller may append more, and use the chunk again: the writer holds a bounded number of bytes. */
  append(chunk: Uint8Array): Promise<void>;
  /** All bytes are stored and visible when it resolves. After a failure, of this or of `append`, nothing is kept. */
  finish(): Promise<{ size: number; sha256: string }>;
  /** Forget everything. Never fails. */
  abort(): Promise<void>;
}

export interface MediaReader {
  /** Of the whole file, whatever was asked for. */
  readonly size: number;
  /** Nothing is held open before the first is asked for, nor after the reader turned away. None beyond the end. */
  readonly bytes: AsyncIterable<Uint8Array>;
}
