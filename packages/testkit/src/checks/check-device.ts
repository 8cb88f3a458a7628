import { type AnyFrame, classOf } from '../frames.js';
import type { Received, TestDevice } from '../test-device.js';
import { bodyOf, connectionsOf, deletedIn, type Evidence, isFinal, type Logged, laneOf, partsOf, type Violation } from './evidence.js';

/** What must hold of what one device saw. */
export function checkDevice(device: TestDevice, evidence: Evidence, log: readonly Logged[]): Violation[] {
  const name = device.device_id;
  return [
    ...device.faults.map((fault) => ({ oracle: 'O5', message: `${name}: ${fault}` }) as const),
    ...order(device, evidence, log),
    ...answers(device),
    ...complete(device, evidence, log),
    ...streams(device),
    ...deletedStays(device),
  ];
}

function* order(device: TestDevice, evidence: Evidence, log: readonly Logged[]): Iterable<Violation> {
  const name = device.device_id;
  // Also places that were lost with the outbox: they were given, and the frame was what it is.
  const given = evidence.log ?? log;
  const bodies = new Map(given.map(({ cursor, frame }) => [cursor, bodyOf(frame)]));
  const standing = new Set(log.map(({ cursor }) => cursor));
  const moved = new Set(given.flatMap(({ cursor, frame }) => (standing.has(cursor) ? [] : (frame.payload.message_id ?? []))));
  const places = new Map([...evidence.histories].map(([lane, rows]) => [lane, new Map(rows.map((row, i) => [row.message_id!, i]))]));
  const received = inPlace(device);
  for (const part of partsOf(received)) {
    let last = 0;
    const place = new Map<string, number>();
    for (const { frame, connection } of part) {
      if (frame.cursor !== undefined) {
        if (frame.cursor <= last) yield { oracle: 'O4', message: `${name}#${connection}: ${frame.type} ${frame.cursor} after ${last}` };
        last = frame.cursor;
        const body = bodies.get(frame.cursor);
        if (body === undefined)
          yield { oracle: 'O4', message: `${name}#${connection}: ${frame.type} has cursor ${frame.cursor}, never given` };
        else if (body !== bodyOf(frame))
          yield { oracle: 'O4', message: `${name}#${connection}: cursor ${frame.cursor} is ${bodyOf(frame)} here, ${body} elsewhere` };
      }
      const ordered = isFinal(frame) && frame.payload.late !== true && !moved.has(frame.payload.message_id!);
      const at = ordered ? places.get(laneOf(frame))?.get(frame.payload.message_id!) : undefined;
      if (at === undefined) continue;
      const before = place.get(laneOf(frame)) ?? -1;
      if (at <= before)
        yield { oracle: 'O3', message: `${name}#${connection}: ${frame.payload.message_id} comes in another order than in history` };
      place.set(laneOf(frame), at);
    }
  }
  for (const [connection, frames] of connectionsOf(received)) {
    const cursors = new Set<number>();
    const finals = new Map<string, string>();
    let done = 0;
    for (const { frame, source } of frames) {
      if (frame.type === 'sync.done') done = frame.payload.cursor!;
      if (frame.cursor !== undefined) {
        if (cursors.has(frame.cursor))
          yield { oracle: 'O2', message: `${name}#${connection}: cursor ${frame.cursor} (${frame.type}) twice` };
        cursors.add(frame.cursor);
        if (source === 'live' && frame.cursor <= done)
          yield { oracle: 'O4', message: `${name}#${connection}: ${frame.type} ${frame.cursor} after sync.done ${done}` };
      }
      if (!isFinal(frame) || frame.payload.late === true || moved.has(frame.payload.message_id!)) continue;
      const id = frame.payload.message_id!;
      const first = finals.get(id);
      if (first !== undefined) yield { oracle: 'O2', message: `${name}#${connection}: ${id} was said twice` };
      finals.set(id, frame.type);
    }
  }
  // Repeats on another connection are the same frame again.
  const said = new Map<string, string>();
  for (const { frame } of device.received.all) {
    if (!isFinal(frame)) continue;
    const key = `${frame.type} ${frame.payload.late === true} ${frame.payload.message_id}`;
    const first = said.get(key);
    if (first !== undefined && first !== bodyOf(frame))
      yield { oracle: 'O2', message: `${name}: ${frame.payload.message_id} came as ${first} and as ${bodyOf(frame)}` };
    said.set(key, bodyOf(frame));
  }
  if (evidence.lossy) return;
  let watermark = 0;
  for (const { ack, number } of device.connections) {
    const cursor = ack?.payload.sync_cursor;
    if (cursor === undefined) continue;
    if (cursor < watermark) yield { oracle: 'O4', message: `${name}#${number}: sync_cursor ${cursor} after ${watermark}` };
    watermark = cursor;
  }
}

/**
 * Without the answers that are a frame once more, wherever its place in the order was: to a send that was asked again by its `client_ref`,
 * and to one whose frame had come from the outbox, which does not know whom it answers.
 */
function inPlace({ received, asked }: TestDevice): Received[] {
  const times = new Map<string, number>();
  for (const { payload } of asked)
    if (payload.client_ref !== undefined) times.set(payload.client_ref, (times.get(payload.client_ref) ?? 0) + 1);
  const shown = new Set<string>();
  return received.all.filter(({ source, frame }) => {
    if (!isFinal(frame)) return true;
    const { message_id, client_ref } = frame.payload;
    const again = shown.has(message_id!) || (times.get(client_ref ?? '') ?? 0) > 1;
    shown.add(message_id!);
    return !(source === 'answer' && frame.cursor === undefined && again);
  });
}

/** Exactly one answer per request, as long as its connection lives; `internal` only when the deadline had passed. */
function* answers(device: TestDevice): Iterable<Violation> {
  for (const { id, type, connection, answers, at } of device.asked) {
    const where = `${device.device_id}#${connection}: ${type} ${id}`;
    const closed = device.connections[connection - 1]?.closed !== undefined;
    // A pull is answered by its ack, and ended by its end.
    const whole = answers[0]?.type === 'media.pull.ack' && answers[1]?.type === 'media.pull.end' ? 2 : 1;
    if (answers.length > whole) yield { oracle: 'O5', message: `${where} was answered ${answers.length} times` };
    if (answers.length === 0 && !closed) yield { oracle: 'O5', message: `${where} was never answered` };
    const error = answers[0]?.type === 'error' ? answers[0] : undefined;
    if (error?.payload.code !== 'internal') continue;
    const when = device.received.all.find(({ frame }) => frame === error)?.at ?? at;
    if (when - at < 9_900) yield { oracle: 'O5', message: `${where}: internal after ${when - at} ms: ${error.payload.message}` };
  }
}

/** Every durable frame since the device was new has come, or is in history, or its absence was announced or is superseded. */
function* complete(device: TestDevice, evidence: Evidence, log: readonly Logged[]): Iterable<Violation> {
  const first = device.connections.find(({ ack }) => ack)?.ack;
  if (first === undefined) return;
  const start = first.payload.sync_cursor!;
  const cursors = new Set<number>();
  const bodies = new Set<string>();
  const known = new Set<string>();
  for (const { frame } of device.received.all) {
    if (frame.cursor !== undefined) cursors.add(frame.cursor);
    bodies.add(bodyOf(frame));
    if (frame.payload.message_id !== undefined) known.add(`${frame.type} ${frame.payload.message_id}`);
    if (frame.payload.picker_id !== undefined) known.add(`${frame.type} ${frame.payload.picker_id}`);
  }
  const announced = announcedGaps(device);
  const gone = deletedIn(log);
  const closed = new Set(log.flatMap(({ frame }) => (frame.type === 'picker.closed' ? [frame.payload.picker_id] : [])));
  const superseded = supersededIn(log);
  const isGone = goneIn(log);
  for (const { cursor, frame, except_device_id } of log) {
    if (cursor <= start || classOf(frame.type) !== 'durable' || except_device_id === device.device_id) continue;
    if (cursors.has(cursor) || bodies.has(bodyOf(frame))) continue;
    const { message_id, picker_id } = frame.payload;
    // Told after hello.ack as what is going on now, in other words than the log's.
    if (known.has(`${frame.type} ${message_id ?? picker_id}`)) continue;
    // Of a lane that is gone, that it is.
    if (frame.type !== 'channel.deleted' && isGone(frame)) continue;
    if (superseded.has(cursor) || (message_id !== undefined && gone.has(message_id))) continue;
    if (frame.type.startsWith('picker.') && closed.has(picker_id)) continue;
    if (announced.some(([from, to]) => cursor > from && cursor <= to)) {
      const inHistory = !isFinal(frame) || evidence.histories.get(laneOf(frame))?.some((row) => row.message_id === message_id);
      if (inHistory !== false) continue;
    }
    yield {
      oracle: isFinal(frame) ? 'O1' : 'O6',
      message: `${device.device_id} never got ${frame.type} at ${cursor}: ${bodyOf(frame).slice(0, 120)}`,
    };
  }
}

/** From what the device had to what `sync.done` said, where that said that something is missing. */
function announcedGaps(device: TestDevice): [number, number][] {
  const gaps: [number, number][] = [];
  for (const { type, answers } of device.asked) {
    const done = answers.find((answer) => answer.type === 'sync.done');
    if (type !== 'sync' || done === undefined) continue;
    if (done.payload.truncated === true || done.payload.reset === true) gaps.push([0, done.payload.cursor!]);
  }
  return gaps;
}

/** Whether a frame is of a lane that was deleted, whenever that was: ids are never given again. */
function goneIn(log: readonly Logged[]): (frame: AnyFrame) => boolean {
  const lanes = log.flatMap(({ frame }) => (frame.type === 'channel.deleted' ? [frame.payload] : []));
  return ({ chat_id, thread_id }) =>
    lanes.some((lane) => lane.chat_id === chat_id && (lane.thread_id === undefined || lane.thread_id === thread_id));
}

/** Cursors that a compacted `sync` leaves out. */
function supersededIn(log: readonly Logged[]): Set<number> {
  const newest = new Map<string, number>();
  const out = new Set<number>();
  for (const { cursor, frame } of log) {
    const key =
      frame.type === 'agent.busy' || frame.type === 'agent.idle'
        ? `activity ${laneOf(frame)}`
        : frame.type === 'read.receipt'
          ? `receipt ${laneOf(frame)} ${frame.payload.device_id}`
          : undefined;
    if (key === undefined) continue;
    const older = newest.get(key);
    if (older !== undefined) out.add(older);
    newest.set(key, cursor);
  }
  return out;
}

/** Updates only between start and stop, never backwards; nothing live of a turn after its idle. */
function* streams(device: TestDevice): Iterable<Violation> {
  const stopped = new Set<string>();
  for (const [connection, frames] of connectionsOf(device.received.all)) {
    const where = `${device.device_id}#${connection}`;
    const started = new Map<string, number>();
    const idle = new Set<string>();
    for (const { frame } of frames) {
      const { message_id } = frame.payload;
      if (frame.type === 'agent.busy') idle.delete(laneOf(frame));
      if (frame.type === 'agent.idle') idle.add(laneOf(frame));
      if (frame.type === 'message.start') started.set(message_id!, started.get(message_id!) ?? 0);
      if (frame.type === 'message.stop' || frame.type === 'message') stopped.add(message_id!);
      const live = /^(message\.update|message\.delta|reasoning\.delta|tool\.progress|typing)$/.test(frame.type);
      if (live && idle.has(laneOf(frame)) && frame.payload.on !== false)
        yield { oracle: 'O10', message: `${where}: ${frame.type} after agent.idle in ${laneOf(frame)}` };
      if (frame.type === 'message.update') yield* update(where, frame, started, stopped);
      if (frame.type === 'message.delta') yield* delta(where, frame, started, stopped);
    }
  }
}
function* update(where: string, frame: AnyFrame, started: Map<string, number>, stopped: Set<string>): Iterable<Violation> {
  const { message_id, text } = frame.payload;
  const before = started.get(message_id!);
  if (before === undefined) yield { oracle: 'O3', message: `${where}: message.update of ${message_id} before its start` };
  if (stopped.has(message_id!)) yield { oracle: 'O3', message: `${where}: message.update of ${message_id} after its stop` };
  if (text!.length < (before ?? 0)) yield { oracle: 'O3', message: `${where}: ${message_id} went back to ${text!.length} from ${before}` };
  started.set(message_id!, text!.length);
}

/** What is given in pieces fits what was given before, always: a piece that does not would never be shown. */
function* delta(where: string, frame: AnyFrame, started: Map<string, number>, stopped: Set<string>): Iterable<Violation> {
  const { message_id, text, offset } = frame.payload;
  const before = started.get(message_id!);
  if (before === undefined) yield { oracle: 'O3', message: `${where}: message.delta of ${message_id} before its start` };
  if (stopped.has(message_id!)) yield { oracle: 'O3', message: `${where}: message.delta of ${message_id} after its stop` };
  if (offset !== before) yield { oracle: 'O3', message: `${where}: message.delta of ${message_id} at ${offset}, but ${before} is there` };
  if (/^[\udc00-\udfff]|[\ud800-\udbff]$/.test(text!)) yield { oracle: 'O3', message: `${where}: a character of ${message_id} is split` };
  started.set(message_id!, (before ?? 0) + text!.length);
}

/** On one connection, after `message.deleted` nothing of that id; but for its receipt, which says nothing of it. */
function* deletedStays(device: TestDevice): Iterable<Violation> {
  const gone = new Set<string>();
  for (const { frame, source, connection } of device.received.all as readonly Received[]) {
    if (frame.type === 'message.deleted') for (const id of frame.payload.message_ids ?? []) gone.add(id);
    else if (
      frame.type !== 'read.receipt' &&
      frame.payload.message_id !== undefined &&
      gone.has(frame.payload.message_id) &&
      source !== 'answer'
    )
      yield {
        oracle: 'O11',
        message: `${device.device_id}#${connection}: ${frame.type} of ${frame.payload.message_id} after its deletion`,
      };
  }
}
