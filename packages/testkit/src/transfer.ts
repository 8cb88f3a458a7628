import { createHash } from 'node:crypto';
import type { AnyFrame, Payload } from './frames.js';
import type { TestDevice } from './test-device.js';

export const sha256Of = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

export interface UploadOptions {
  /** What `start` says besides, or instead. */
  readonly start?: Payload;
  /** What `end` says besides. */
  readonly end?: Payload;
  /** Bytes of a binary frame. Default 64 KiB. */
  readonly chunk_bytes?: number;
}

/** A whole upload; resolves with what answers its `end`. */
export async function upload(device: TestDevice, media_ref: string, bytes: Uint8Array, options: UploadOptions = {}): Promise<AnyFrame> {
  const { start = {}, end = {}, chunk_bytes = 64 * 1024 } = options;
  const size = bytes.length;
  device.say('media.upload.start', { media_ref, kind: 'file', mime: 'application/octet-stream', size, filename: 'a.bin', ...start });
  sendBytes(device, bytes, chunk_bytes);
  return device.request('media.upload.end', { media_ref, ...end });
}

export function sendBytes(device: TestDevice, bytes: Uint8Array, chunk_bytes = 64 * 1024): void {
  for (let at = 0; at < bytes.length; at += chunk_bytes) device.raw(bytes.subarray(at, at + chunk_bytes));
}

/** A whole pull: its first answer, and the bytes when there were any. */
export async function pull(
  device: TestDevice,
  media_id: string,
  range: { offset?: number; length?: number } = {},
): Promise<{ first: AnyFrame; end?: AnyFrame; bytes: Buffer }> {
  const from = device.binary.length;
  const first = await device.request('media.pull', { media_id, ...range });
  if (first.type !== 'media.pull.ack') return { first, bytes: Buffer.alloc(0) };
  const end = await device.next((frame) => frame.type === 'media.pull.end' && frame.id === first.id);
  return { first, end, bytes: Buffer.concat(device.binary.slice(from)) };
}
