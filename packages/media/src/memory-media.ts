import type { Clock } from '@iris/runtime';
import { systemClock } from '@iris/runtime';
import type { MediaStore, MediaWriter } from './media.js';
import { mediaWriter, type Resumed } from './writer.js';

const window_bytes = 256 * 1024;

interface Unfinished {
  readonly opened: number;
  readonly tenant_id: string;
  /** Set when it was opened with `keep`. */
  readonly kept: string | undefined;
  chunks: Uint8Array[];
  size: number;
}

/** Everything in memory, for tests. */
export function memoryMedia({ clock = systemClock }: { clock?: Clock } = {}): MediaStore {
  const files = new Map<string, Map<string, Uint8Array>>();
  const unfinished = new Set<Unfinished>();

  function writerOf(first: Unfinished, tenant_id: string, object_id: string, resumed?: Resumed): MediaWriter {
    let one = first;
    let own = resumed === undefined;
    /** Who goes on with it takes it away from whoever may write yet. */
    const claim = () => {
      if (own) return;
      insist();
      unfinished.delete(one);
      one = { ...one, chunks: [Buffer.concat(one.chunks).subarray(0, resumed!.offset)], size: resumed!.offset };
      unfinished.add(one);
      own = true;
    };
    const insist = () => {
      if (!unfinished.has(one)) throw new Error('swept away');
    };
    return mediaWriter(
      {
        async write(chunks) {
          claim();
          insist();
          for (const chunk of chunks) {
            // Of a Buffer, `slice` would be the same memory.
            one.chunks.push(new Uint8Array(chunk));
            one.size += chunk.byteLength;
          }
        },
        async finish() {
          claim();
          insist();
          unfinished.delete(one);
          const own = files.get(tenant_id) ?? new Map<string, Uint8Array>();
          files.set(tenant_id, own);
          own.set(object_id, new Uint8Array(Buffer.concat(one.chunks)));
        },
        async abort() {
          unfinished.delete(one);
        },
        async suspend() {
          if (one.kept === undefined) unfinished.delete(one);
        },
      },
      resumed,
    );
  }

  const media: MediaStore = {
    async open(tenant_id, object_id, { keep } = { keep: false }) {
      const kept = keep ? `${tenant_id}\n${object_id}` : undefined;
      const one: Unfinished = { opened: clock.now(), tenant_id, kept, chunks: [], size: 0 };
      unfinished.add(one);
      return writerOf(one, tenant_id, object_id);
    },
    async resume(tenant_id, object_id) {
      const one = [...unfinished].find(({ kept }) => kept === `${tenant_id}\n${object_id}`);
      if (one === undefined) return undefined;
      const offset = one.size;
      const readBack = () => media.read(tenant_id, object_id);
      const discard = () => media.remove(tenant_id, object_id);
      return { offset, writer: writerOf(one, tenant_id, object_id, { offset, readBack, discard }) };
    },
    async read(tenant_id, object_id, { offset, length = Number.POSITIVE_INFINITY } = { offset: 0 }) {
      const bytes = files.get(tenant_id)?.get(object_id);
      return bytes && { size: bytes.byteLength, bytes: windows(bytes, offset, Math.min(bytes.byteLength, offset + length)) };
    },
    async stat(tenant_id, object_id) {
      const bytes = files.get(tenant_id)?.get(object_id);
      return bytes && { size: bytes.byteLength };
    },
    remove: async (tenant_id, object_id) => void files.get(tenant_id)?.delete(object_id),
    async removeTenant(tenant_id) {
      files.delete(tenant_id);
      for (const one of unfinished) if (one.tenant_id === tenant_id) unfinished.delete(one);
    },
    async sweep(before_ms) {
      const old = [...unfinished].filter(({ opened }) => opened < before_ms);
      for (const one of old) unfinished.delete(one);
      return old.length;
    },
    close: async () => {},
  };
  return media;
}

async function* windows(bytes: Uint8Array, from: number, to: number): AsyncGenerator<Uint8Array> {
  for (let at = from; at < to; at += window_bytes) yield bytes.slice(at, Math.min(to, at + window_bytes));
}
