import type { DownFrame } from '@iris/protocol';
import { type Connection, IrisError } from './connection.js';
import type { ClientClock } from './socket.js';

/** A file as browsers have it; only what is read of it. */
export interface FileLike {
  readonly name: string;
  readonly type: string;
  readonly size: number;
  slice(from: number, to: number): { arrayBuffer(): Promise<ArrayBuffer> };
}

export interface Transfers {
  /**
   * Resolves with a name for `media_refs` when the gateway has the whole file. A line that is lost is waited for, and the upload goes on
   * where it was. Rejects with what it was refused for.
   * @param onProgress bytes that were sent
   */
  upload(file: FileLike, onProgress?: (bytes: number) => void): Promise<string>;
  /** The bytes of a file. */
  pull(media_id: string): Promise<Uint8Array<ArrayBuffer>>;
  bytes(data: Uint8Array): void;
  heard(frame: DownFrame): void;
}

const chunk_bytes = 64 * 1024;
const ahead_bytes = 1024 * 1024;
const pause_ms = 25;
const again_ms = 300;

/** Files go one by one, in each direction: so the protocol has it. */
export function transfers({ wire, clock, newRef }: { wire: () => Connection; clock: ClientClock; newRef: () => string }): Transfers {
  let lastUp: Promise<unknown> = Promise.resolve();
  let lastDown: Promise<unknown> = Promise.resolve();
  let receiving: { readonly parts: Uint8Array[]; readonly ended: (ok: boolean) => void } | undefined;
  const pause = (ms: number) => new Promise<void>((resolve) => void clock.after(ms, resolve));
  const after = <T>(last: Promise<unknown>, run: () => Promise<T>): Promise<T> => last.then(run, run);
  /** Again on the next line, as long as it is only the line that failed. */
  async function lasting<T>(run: () => Promise<T | undefined>): Promise<T> {
    for (;;) {
      try {
        const done = await run();
        if (done !== undefined) return done;
      } catch (error) {
        if (!(error instanceof IrisError) || !['closed', 'internal', 'rate_limited'].includes(error.code)) throw error;
        await pause(error.retry_after_ms ?? again_ms);
      }
      while (!wire().online) await pause(again_ms);
    }
  }

  async function send(file: FileLike, media_ref: string, onProgress: (bytes: number) => void): Promise<string | undefined> {
    const kind = /^(image|video|audio)\//.exec(file.type)?.[1] ?? 'file';
    const payload = { media_ref, kind, mime: file.type || 'application/octet-stream', size: file.size, filename: file.name, resume: true };
    const { line } = wire();
    const begun = await wire().request({ type: 'media.upload.start', payload });
    let at = (begun.payload as { offset: number }).offset;
    while (at < file.size) {
      const bytes = new Uint8Array(await file.slice(at, Math.min(file.size, at + chunk_bytes)).arrayBuffer());
      while (wire().buffered > ahead_bytes) await pause(pause_ms);
      if (!wire().bytes(bytes, line)) return undefined;
      at += bytes.length;
      onProgress(at);
    }
    await wire().request({ type: 'media.upload.end', payload: { media_ref } });
    return media_ref;
  }

  async function receive(media_id: string): Promise<Uint8Array<ArrayBuffer> | undefined> {
    const parts: Uint8Array[] = [];
    const { line } = wire();
    const ended = new Promise<boolean>((resolve) => {
      receiving = { parts, ended: resolve };
    });
    try {
      await wire().request({ type: 'media.pull', payload: { media_id } });
      const lost = (async () => {
        while (wire().line === line && receiving?.parts === parts) await pause(again_ms);
        return false;
      })();
      if (!(await Promise.race([ended, lost]))) return undefined;
    } finally {
      receiving = undefined;
    }
    const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
    let at = 0;
    for (const part of parts) {
      whole.set(part, at);
      at += part.length;
    }
    return whole;
  }

  return {
    upload(file, onProgress = () => {}) {
      const media_ref = `mu_${newRef()}`;
      const done = after(lastUp, () => lasting(() => send(file, media_ref, onProgress)));
      lastUp = done;
      return done;
    },
    pull(media_id) {
      const done = after(lastDown, () => lasting(() => receive(media_id)));
      lastDown = done;
      return done;
    },
    bytes: (data) => void receiving?.parts.push(data),
    heard(frame) {
      if (frame.type === 'media.pull.end') receiving?.ended(frame.payload.ok);
    },
  };
}
