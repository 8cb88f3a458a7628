import type { Cursor, MessageId, TenantId } from '@iris/protocol';
import type { Clock, Log } from '@iris/runtime';
import type { Messages } from '@iris/store';

/** The places of messages, written to the store behind their frames: nobody waits for them, and the repair job finds those that are lost. */
export interface CursorMarks {
  /** It has this place. Kept back until {@link release}: a message with a place in the store counts as said in every respect. */
  add(tenant_id: TenantId, message_id: MessageId, cursor: Cursor): void;
  /** All that its frame's emission had to write is written: so may the place be. With `false` it is forgotten, and the message is owed. */
  release(message_ids: readonly MessageId[], written: boolean): void;
  /** While it is not written yet. */
  of(message_id: MessageId): Cursor | undefined;
  /** Everything added so far is written, or cannot be. */
  flush(): Promise<void>;
}

const batchMax = 500;
/** More than this waits only while the store is away for long; what is dropped is owed and repaired. */
const waitingMax = 50_000;
const pause_ms = 500;

export function cursorMarks({ messages, clock, log }: { messages: Messages; clock: Clock; log: Log }): CursorMarks {
  type Mark = { readonly tenant_id: TenantId; readonly message_id: MessageId; readonly cursor: Cursor };
  const held = new Map<MessageId, Mark>();
  const waiting = new Map<MessageId, Mark>();
  let writing: Promise<boolean> | undefined;
  let woken = false;

  const wake = (soon: (run: () => void) => void) => {
    if (woken || waiting.size === 0) return;
    woken = true;
    soon(() => {
      woken = false;
      void write();
    });
  };
  const writeOnce = async (): Promise<boolean> => {
    const batch = [...waiting.values()].slice(0, batchMax);
    if (batch.length === 0) return true;
    try {
      await messages.setCursors(batch);
    } catch (error) {
      log.warn('session.cursors_not_written', { count: waiting.size, error });
      wake((run) => void clock.after(pause_ms, run));
      return false;
    }
    for (const mark of batch) if (waiting.get(mark.message_id) === mark) waiting.delete(mark.message_id);
    return true;
  };
  const write = async (): Promise<void> => {
    if (writing !== undefined) return;
    writing = writeOnce();
    const wrote = await writing;
    writing = undefined;
    if (wrote) wake((run) => clock.soon(run));
  };
  return {
    add(tenant_id, message_id, cursor) {
      if (waiting.size < waitingMax) held.set(message_id, { tenant_id, message_id, cursor });
    },
    release(message_ids, written) {
      for (const id of message_ids) {
        const mark = held.get(id);
        held.delete(id);
        if (written && mark !== undefined) waiting.set(id, mark);
      }
      wake((run) => clock.soon(run));
    },
    of: (message_id) => (waiting.get(message_id) ?? held.get(message_id))?.cursor,
    async flush() {
      await writing;
      while (waiting.size > 0) if (!(await writeOnce())) return;
    },
  };
}
