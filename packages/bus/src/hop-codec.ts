/**
 * Records to bytes and back. A message is one version byte and records after each other; a record is one byte for its
 * kind, its fields, and its body with the length before it. The kinds that every frame makes are laid out field by field,
 * since this runs for every frame on every hop; the others carry their fields as JSON.
 */
import type { AgentId, ConnectionId, DeviceId, EdgeId, TenantId } from '@iris/protocol';
import {
  putByte,
  putBytes,
  putRaw,
  putString,
  putVarint,
  type Reader,
  reader,
  takeByte,
  takeBytes,
  takeString,
  takeVarint,
  type Writer,
  writer,
} from './bytes.js';
import type { ToEdge, ToSession } from './hop.js';

type HopRecord = ToSession | ToEdge;
type Of<K extends HopRecord['kind']> = Extract<HopRecord, { kind: K }>;

/** Bytes of one bus message that batches are cut to; a record larger than this goes alone, whole. */
export const batchBytes = 512 * 1024;

/** Raised when the layout changes, so that mixed versions refuse each other's bytes instead of misreading them. */
const version = 1;
const kinds = { other: 0, durable: 1, ephemeral: 2, request: 3, answer: 4, update: 5 } as const;
const headerEstimate = 192;

/** Records → one bus message, whatever its size. */
export function pack(records: readonly HopRecord[]): Uint8Array {
  const w = writer(1 + records.reduce((sum, record) => sum + headerEstimate + record.body.length, 0));
  putByte(w, version);
  for (const record of records) putRecord(w, record);
  return bytesOf(w, w.at);
}

/**
 * Records → bus messages in the same order, none larger than `maxBytes` unless it is a single record that is. Cut here
 * because a message is one piece of memory at the broker and at everyone who hears it.
 */
export function packBatches(records: readonly HopRecord[], maxBytes: number = batchBytes): Uint8Array[] {
  const messages: Uint8Array[] = [];
  let left = records.reduce((sum, record) => sum + headerEstimate + record.body.length, 0);
  const begin = (): Writer => {
    const w = writer(Math.min(left, maxBytes) + headerEstimate);
    putByte(w, version);
    return w;
  };
  let w = begin();
  for (const record of records) {
    const start = w.at;
    putRecord(w, record);
    if (w.at > maxBytes && start > 1) {
      messages.push(bytesOf(w, start));
      const over = w.buffer.subarray(start, w.at);
      w = begin();
      putRaw(w, over);
    }
    left -= headerEstimate + record.body.length;
  }
  if (w.at > 1) messages.push(bytesOf(w, w.at));
  return messages;
}

/**
 * The reverse of {@link pack}. Bodies are views into `data`: copy what outlives the call.
 * @throws RangeError for bytes that are no such message
 */
export function unpack<T extends HopRecord>(data: Uint8Array): T[] {
  const r = reader(data);
  const found = takeByte(r);
  if (found !== version) throw new RangeError(`hop version ${found}`);
  const records: HopRecord[] = [];
  while (r.at < data.length) records.push(takeRecord(r));
  return records as T[];
}

const bytesOf = (w: Writer, end: number): Uint8Array => new Uint8Array(w.buffer.buffer, w.buffer.byteOffset, end);

function putRecord(w: Writer, record: HopRecord): void {
  switch (record.kind) {
    case 'durable':
      putDurable(w, record);
      break;
    case 'ephemeral':
      putEphemeral(w, record);
      break;
    case 'request':
      putRequest(w, record);
      break;
    case 'answer':
      putAnswer(w, record);
      break;
    case 'update':
      putUpdate(w, record);
      break;
    default: {
      const { body: _, ...header } = record;
      putByte(w, kinds.other);
      putString(w, JSON.stringify(header));
    }
  }
  putBytes(w, record.body);
}

function takeRecord(r: Reader): HopRecord {
  const kind = takeByte(r);
  switch (kind) {
    case kinds.durable:
      return takeDurable(r);
    case kinds.ephemeral:
      return takeEphemeral(r);
    case kinds.request:
      return takeRequest(r);
    case kinds.answer:
      return takeAnswer(r);
    case kinds.update:
      return takeUpdate(r);
    case kinds.other: {
      const header = JSON.parse(takeString(r)) as Omit<HopRecord, 'body'>;
      return { ...header, body: takeBytes(r) } as HopRecord;
    }
    default:
      throw new RangeError(`hop record of kind ${kind}`);
  }
}

// Each pair below writes and reads the same fields in the same order. A field that may be absent has a bit in `flags`.

function putDurable(w: Writer, record: Of<'durable'>): void {
  const { message_id, origin, except_device_id } = record;
  const flags =
    (message_id === undefined ? 0 : 1) | (origin === undefined ? 0 : 2) | (except_device_id === undefined ? 0 : 4) | (record.push ? 8 : 0);
  putByte(w, kinds.durable);
  putByte(w, flags);
  putString(w, record.tenant_id);
  putVarint(w, record.cursor);
  putVarint(w, record.previous);
  putString(w, record.type);
  if (message_id !== undefined) putString(w, message_id);
  if (origin !== undefined) {
    putString(w, origin.connection_id);
    putVarint(w, origin.n);
  }
  if (except_device_id !== undefined) putString(w, except_device_id);
}

function takeDurable(r: Reader): Of<'durable'> {
  const flags = takeByte(r);
  return {
    kind: 'durable',
    tenant_id: takeString(r) as TenantId,
    cursor: takeVarint(r),
    previous: takeVarint(r),
    type: takeString(r),
    ...(flags & 1 ? { message_id: takeString(r) } : undefined),
    ...(flags & 2 ? { origin: { connection_id: takeString(r) as ConnectionId, n: takeVarint(r) } } : undefined),
    ...(flags & 4 ? { except_device_id: takeString(r) as DeviceId } : undefined),
    push: (flags & 8) !== 0,
    body: takeBytes(r),
  };
}

function putEphemeral(w: Writer, record: Of<'ephemeral'>): void {
  const { message_id, to } = record;
  putByte(w, kinds.ephemeral);
  putByte(w, (message_id === undefined ? 0 : 1) | (to === undefined ? 0 : 2));
  putString(w, record.tenant_id);
  putVarint(w, record.after);
  putString(w, record.key);
  putVarint(w, record.rev);
  putString(w, record.type);
  if (message_id !== undefined) putString(w, message_id);
  if (to !== undefined) putString(w, to);
}

function takeEphemeral(r: Reader): Of<'ephemeral'> {
  const flags = takeByte(r);
  return {
    kind: 'ephemeral',
    tenant_id: takeString(r) as TenantId,
    after: takeVarint(r),
    key: takeString(r),
    rev: takeVarint(r),
    type: takeString(r),
    ...(flags & 1 ? { message_id: takeString(r) } : undefined),
    ...(flags & 2 ? { to: takeString(r) as ConnectionId } : undefined),
    body: takeBytes(r),
  };
}

function putRequest(w: Writer, record: Of<'request'>): void {
  const { device_id, agent_id, epoch, address } = record;
  const flags =
    (record.peer === 'agent' ? 1 : 0) |
    (device_id === undefined ? 0 : 2) |
    (agent_id === undefined ? 0 : 4) |
    (epoch === undefined ? 0 : 8) |
    (address === undefined ? 0 : 16);
  putByte(w, kinds.request);
  putByte(w, flags);
  putString(w, record.tenant_id);
  putString(w, record.edge_id);
  putString(w, record.connection_id);
  putVarint(w, record.n);
  putVarint(w, record.base);
  putString(w, record.type);
  if (device_id !== undefined) putString(w, device_id);
  if (agent_id !== undefined) putString(w, agent_id);
  if (epoch !== undefined) putVarint(w, epoch);
  if (address !== undefined) putString(w, address);
}

function takeRequest(r: Reader): Of<'request'> {
  const flags = takeByte(r);
  return {
    kind: 'request',
    tenant_id: takeString(r) as TenantId,
    edge_id: takeString(r) as EdgeId,
    connection_id: takeString(r) as ConnectionId,
    n: takeVarint(r),
    base: takeVarint(r),
    peer: flags & 1 ? 'agent' : 'device',
    type: takeString(r),
    ...(flags & 2 ? { device_id: takeString(r) as DeviceId } : undefined),
    ...(flags & 4 ? { agent_id: takeString(r) as AgentId } : undefined),
    ...(flags & 8 ? { epoch: takeVarint(r) } : undefined),
    ...(flags & 16 ? { address: takeString(r) } : undefined),
    body: takeBytes(r),
  };
}

function putAnswer(w: Writer, record: Of<'answer'>): void {
  putByte(w, kinds.answer);
  putByte(w, record.cursor === undefined ? 0 : 1);
  putString(w, record.connection_id);
  putVarint(w, record.n);
  if (record.cursor !== undefined) putVarint(w, record.cursor);
}

function takeAnswer(r: Reader): Of<'answer'> {
  const flags = takeByte(r);
  return {
    kind: 'answer',
    connection_id: takeString(r) as ConnectionId,
    n: takeVarint(r),
    ...(flags & 1 ? { cursor: takeVarint(r) } : undefined),
    body: takeBytes(r),
  };
}

function putUpdate(w: Writer, record: Of<'update'>): void {
  putByte(w, kinds.update);
  putString(w, record.tenant_id);
  putString(w, record.edge_id);
  putString(w, record.connection_id);
  putVarint(w, record.after_n);
  putVarint(w, record.order);
  putString(w, record.agent_id);
  putVarint(w, record.epoch);
  putString(w, record.type);
}

function takeUpdate(r: Reader): Of<'update'> {
  return {
    kind: 'update',
    tenant_id: takeString(r) as TenantId,
    edge_id: takeString(r) as EdgeId,
    connection_id: takeString(r) as ConnectionId,
    after_n: takeVarint(r),
    order: takeVarint(r),
    agent_id: takeString(r) as AgentId,
    epoch: takeVarint(r),
    type: takeString(r),
    body: takeBytes(r),
  };
}
