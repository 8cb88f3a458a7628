import { type Bus, NoResponders, packBatches, subjects, type ToSession } from '@iris/bus';
import type { SessionId } from '@iris/protocol';
import type { Clock, Log } from '@iris/runtime';

/**
 * Gathers what goes to each session instance in a turn of the loop, and sends it as one bus request, to which the instance says no
 * more than that it has it. `gone` is told when nobody serves it; what was accepted and not answered is the caller's to ask again.
 */
export function batches(deps: {
  readonly bus: Bus;
  readonly clock: Clock;
  readonly log: Log;
  readonly accept_ms: number;
  gone(session_id: SessionId): void;
}): (session_id: SessionId, record: ToSession) => void {
  let open = new Map<SessionId, ToSession[]>();
  const flush = () => {
    const full = open;
    open = new Map();
    for (const [session_id, records] of full) {
      for (const data of packBatches(records)) {
        deps.bus.request(subjects.session(session_id), data, { timeout_ms: deps.accept_ms }).catch((error: unknown) => {
          if (error instanceof NoResponders) deps.gone(session_id);
          else deps.log.debug('edge.not_accepted', { session_id, error });
        });
      }
    }
  };
  return (session_id, record) => {
    if (open.size === 0) deps.clock.soon(flush);
    const batch = open.get(session_id);
    if (batch) batch.push(record);
    else open.set(session_id, [record]);
  };
}
