import { type Cursor, type DeviceId, durableFrame, type Lane, laneKey, type MessageId, type TenantId } from '@iris/protocol';
import type { Context } from './context.js';
import type { Effects } from './emission.js';
import { laneFrame } from './rules/frames.js';

/** What devices have shown to a person. */
export interface Reads {
  /**
   * A device has shown a message. What one device says of one lane while an earlier word waits is one step with it: the furthest
   * counts, and is all that other devices hear. Its place in the tenant's order is taken when this returns.
   * @returns whether the message stands in the lane
   */
  seen(read: ReadBy): Promise<boolean>;
}

interface ReadBy {
  readonly tenant_id: TenantId;
  readonly device_id: DeviceId;
  readonly lane: Lane;
  readonly message_id: MessageId;
  readonly deadline: number;
}

interface Step {
  readonly message_ids: Set<MessageId>;
  /** Those of them that stand in the lane. */
  readonly standing: Promise<ReadonlySet<MessageId>>;
}

export function createReads(context: () => Context): Reads {
  const waiting = new Map<string, Step>();

  const step = async (read: ReadBy, message_ids: ReadonlySet<MessageId>, begun: () => void): Promise<ReadonlySet<MessageId>> => {
    const { emitter } = context();
    let standing: ReadonlySet<MessageId> = new Set();
    await emitter.emit({
      kind: 'change',
      tenant_id: read.tenant_id,
      deadline: read.deadline,
      // Not before the messages themselves have their places.
      place: 'fresh',
      async run() {
        begun();
        const places = await placesIn(read, message_ids, context());
        standing = new Set(places.keys());
        return moved(read, places, context());
      },
    });
    return standing;
  };
  return {
    async seen(read) {
      const key = JSON.stringify([read.tenant_id, read.device_id, laneKey(read.lane)]);
      let joined = waiting.get(key);
      if (joined === undefined) {
        const message_ids = new Set<MessageId>();
        const begun = () => {
          if (waiting.get(key) === joined) waiting.delete(key);
        };
        const standing = step(read, message_ids, begun);
        joined = { message_ids, standing };
        waiting.set(key, joined);
        // One that is past its deadline is never begun.
        standing.then(begun, begun);
      }
      joined.message_ids.add(read.message_id);
      return (await joined.standing).has(read.message_id);
    },
  };
}

/** One whose place is not known is behind all others. */
async function placesIn(read: ReadBy, message_ids: ReadonlySet<MessageId>, { store, emitter }: Context): Promise<Map<MessageId, Cursor>> {
  const found = await store.messages.places(read.tenant_id, [...message_ids]);
  return new Map(
    [...found].flatMap(([id, at]) => (laneKey(at) === laneKey(read.lane) ? [[id, at.cursor ?? emitter.placeOf(id) ?? 0] as const] : [])),
  );
}

async function moved(read: ReadBy, places: ReadonlyMap<MessageId, Cursor>, { store }: Context): Promise<Effects> {
  const { tenant_id, device_id, lane } = read;
  const [furthest] = [...places].sort(([, one], [, other]) => other - one);
  if (furthest === undefined) return {};
  const [message_id, cursor] = furthest;
  const { chat_id, thread_id } = lane;
  if (!(await store.reads.advance({ tenant_id, device_id, chat_id, thread_id, message_id, cursor }))) return {};
  const shown = laneFrame('read.receipt', lane, { message_id, device_id });
  return { frames: [durableFrame(shown, { key: `read:${device_id}:${message_id}`, except_device_id: device_id })] };
}
