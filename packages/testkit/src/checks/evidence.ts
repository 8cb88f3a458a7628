import type { PushLedgerRow } from '@iris/store';
import type { AnyFrame, Payload } from '../frames.js';
import type { TestAgent } from '../test-agent.js';
import type { Received, TestDevice } from '../test-device.js';

/** A durable frame as it stands in the outbox, in order. */
export interface Logged {
  /** When it was appended, by the world's time. */
  readonly at?: number;
  readonly cursor: number;
  readonly frame: AnyFrame;
  readonly except_device_id?: string;
}

/** Everything of one tenant that the checks look at, gathered when all is quiet again and every device has synced. */
export interface Evidence {
  readonly devices: readonly TestDevice[];
  readonly agents: readonly TestAgent[];
  /** Every frame that was ever appended. Without it, what devices with cursors saw stands in for it. */
  readonly log?: readonly Logged[];
  /** Whole history per lane, by {@link laneOf}. */
  readonly histories: ReadonlyMap<string, readonly Payload[]>;
  /** The outbox lost its data at some point: what was only there may be missing for devices that were told so. */
  readonly lossy?: boolean;
  /** Of devices that can be pushed to, when pushes are on. */
  readonly pushes?: readonly PushEvidence[];
}

/** What the ledger says of one device, and what providers were given for it. */
export interface PushEvidence {
  readonly device_id: string;
  readonly rows: readonly PushLedgerRow[];
  readonly last_pushed_cursor: number;
  /** Pushes that a provider accepted, in order, by the cursor in them; an app shows the same one once. */
  readonly accepted: readonly { readonly cursor: number; readonly at: number }[];
  /** Whether `accepted` would have this one, if it was sent; default: yes. */
  readonly seen?: (row: PushLedgerRow) => boolean;
}

export type Oracle = 'O1' | 'O2' | 'O3' | 'O4' | 'O5' | 'O6' | 'O10' | 'O11' | 'O12';
export interface Violation {
  readonly oracle: Oracle;
  readonly message: string;
}

export const laneOf = (frame: { readonly chat_id?: string | undefined; readonly thread_id?: string | null | undefined }): string =>
  `${frame.chat_id ?? ''}${frame.thread_id ? `/${frame.thread_id}` : ''}`;

/** What every copy of a frame must agree on: all but the request's id, the cursor, and links to files, which are each device's own. */
export function bodyOf({ id: _id, cursor: _cursor, v: _v, ...rest }: AnyFrame): string {
  return stable(withoutLinks(rest));
}
/** A frame, or a row of history, without the links in its media entries. */
export function withoutLinks<T extends object>(of: T): T {
  const { media, payload } = of as { media?: unknown; payload?: unknown };
  return {
    ...of,
    ...(Array.isArray(media) ? { media: media.map((entry: object) => ({ ...entry, url: undefined })) } : {}),
    ...(typeof payload === 'object' && payload !== null ? { payload: withoutLinks(payload) } : {}),
  };
}
/** As JSON, whatever the order of its keys. */
export function stable(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(stable).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  const entries = Object.entries(value).filter(([, inner]) => inner !== undefined);
  return `{${entries
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, inner]) => `${JSON.stringify(key)}:${stable(inner)}`)
    .join(',')}}`;
}

/** Frames that end something said: they are in `history` under their message id. */
export const isFinal = (frame: AnyFrame): boolean => frame.type === 'message' || frame.type === 'message.stop';

/** The log as given, or as the devices that were shown cursors saw it. */
export function logOf(evidence: Evidence): readonly Logged[] {
  const { log, devices } = evidence;
  if (log) return evidence.lossy ? withoutLostPlaces(log) : log;
  const seen = new Map<number, Logged>();
  for (const device of devices)
    for (const { frame } of device.received.all)
      if (frame.cursor !== undefined && !seen.has(frame.cursor)) seen.set(frame.cursor, { cursor: frame.cursor, frame });
  return [...seen.values()].sort((a, b) => a.cursor - b.cursor);
}

/**
 * When the outbox is lost in the moment between an append and the note of its place in the store, whoever finds the message owed appends it
 * again, under another cursor. Its second place is the one that history knows.
 */
function withoutLostPlaces(log: readonly Logged[]): readonly Logged[] {
  const last = new Map(log.filter(isPlace).map(({ cursor, frame }) => [frame.payload.message_id, cursor]));
  return log.filter((one) => !isPlace(one) || last.get(one.frame.payload.message_id) === one.cursor);
}

const isPlace = ({ frame }: Logged): boolean => isFinal(frame) && frame.payload.late !== true;

/** Message ids that were deleted, by the log. */
export function deletedIn(log: readonly Logged[]): Set<string> {
  return new Set(log.flatMap(({ frame }) => (frame.type === 'message.deleted' ? (frame.payload.message_ids ?? []) : [])));
}

/**
 * One connection's frames, cut where a `sync` steps back: within a part cursors only rise. That happens once per `sync`, when
 * a device was live for a moment before what it had missed was read.
 */
export function partsOf(received: readonly Received[]): Received[][] {
  const parts: Received[][] = [];
  let part: Received[] = [];
  let connection = 0;
  let last = 0;
  let stepped = new Set<number | string>();
  for (const one of received) {
    const { cursor } = one.frame;
    if (one.connection !== connection) stepped = new Set();
    const replayed = one.source === 'sync' && one.sync !== undefined && cursor !== undefined;
    // What a plain device is shown live has no cursor: the first frame that has one is the first that is replayed.
    const first = replayed && last === 0;
    const back = replayed && cursor <= last && !stepped.has(one.sync);
    if (one.connection !== connection || first || back) {
      part = [];
      parts.push(part);
      last = 0;
    }
    if (back) stepped.add(one.sync);
    connection = one.connection;
    last = Math.max(last, cursor ?? 0);
    part.push(one);
  }
  return parts;
}

export function connectionsOf(received: readonly Received[]): Map<number, Received[]> {
  const all = new Map<number, Received[]>();
  for (const one of received) {
    const list = all.get(one.connection);
    if (list) list.push(one);
    else all.set(one.connection, [one]);
  }
  return all;
}
