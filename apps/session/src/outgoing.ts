import { type Bus, busBytesMax, packBatches, subjects, type ToEdge } from '@iris/bus';
import type { EdgeId } from '@iris/protocol';
import type { Clock, Log, Meter } from '@iris/runtime';

/** What one tick has to say to each edge goes as one bus message: hop two. */
export interface Outgoing {
  to(edge_id: EdgeId, record: ToEdge): void;
  /** Now, not at the end of the tick. */
  flush(): void;
}

export function createOutgoing({ bus, clock, log, meter }: { bus: Bus; clock: Clock; log: Log; meter: Meter }): Outgoing {
  let waiting = new Map<EdgeId, ToEdge[]>();
  const messages = meter.counter('iris_bus_messages_total');
  const bytes = meter.counter('iris_bus_bytes_total');

  const flush = () => {
    const batch = waiting;
    waiting = new Map();
    for (const [edge_id, records] of batch) {
      for (const message of packBatches(records)) {
        // What no message can carry is not carried: a durable frame is found by its gap, an answer is asked for until its deadline.
        if (message.length > busBytesMax) {
          log.error('session.record_too_large', { bytes: message.length, kinds: records.map(({ kind }) => kind) });
          continue;
        }
        messages.add(1, { direction: 'out' });
        bytes.add(message.length, { direction: 'out' });
        bus.publish(subjects.edge(edge_id), message);
      }
    }
  };
  return {
    to(edge_id, record) {
      const records = waiting.get(edge_id);
      if (records !== undefined) {
        records.push(record);
        return;
      }
      if (waiting.size === 0) clock.soon(flush);
      waiting.set(edge_id, [record]);
    },
    flush,
  };
}
