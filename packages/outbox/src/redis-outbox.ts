import type { ConnectionId, Cursor, DeviceId, EdgeId, TenantId } from '@iris/protocol';
import { type Clock, type Log, type Random, silentLog, systemClock, systemRandom } from '@iris/runtime';
import { attemptsKey, keyNames, keyOf } from './keys.js';
import {
  type AppendBatch,
  type Appended,
  type AppendFrame,
  lease_ms as defaultLease_ms,
  keyKept_ms,
  type Outbox,
  type OutboxEntry,
  type OutboxRefusal,
} from './outbox.js';
import { type Line, redisLink } from './redis-link.js';
import { type Argument, script, scriptOn, together } from './redis-script.js';
import type { ScriptName } from './scripts.js';

export interface RedisOutboxOptions {
  /** `redis://` or `rediss://`, with user, password and database as usual. */
  readonly url: string;
  /** Shown in the server's list of clients. */
  readonly name?: string;
  readonly lease_ms?: number;
  readonly clock?: Clock;
  readonly random?: Random;
  readonly log?: Log;
}

/** Entries and devices that one call of a script looks at: a longer one would hold up every other tenant. */
const entriesPerCall = 256;
const devicesPerCall = 256;

/**
 * The outbox in one Redis server (7 or later). Each operation is one script in `lua/`, so each is atomic; times are the server's, the
 * one clock that all callers share. Resolves once the server was reached, however long that takes.
 */
export async function redisOutbox({
  url,
  name = 'iris',
  lease_ms = defaultLease_ms,
  clock = systemClock,
  random = systemRandom,
  log = silentLog,
}: RedisOutboxOptions): Promise<Outbox> {
  const link = await redisLink({ url, name, clock, random, log });

  const one = <R>(operation: ScriptName, tenant_id: TenantId, argsOf: (line: Line) => Argument[]): Promise<R> =>
    link.run(operation, (line) => script<R>(line, operation, tenant_id, argsOf(line)));
  /** Many calls in one trip. */
  const many = <T, R>(operation: string, items: readonly T[], send: (line: Line, item: T) => Promise<R>): Promise<R[]> =>
    items.length === 0 ? Promise.resolve([]) : link.run(operation, (line) => together(line, () => items.map((item) => send(line, item))));

  return {
    append: (batches) =>
      many('append', batches, async (line, batch) =>
        appendedOf(await script<AppendReply>(line, 'append', batch.tenant_id, appendArgs(line, batch))),
      ),
    async seed(tenant_id, at, limit, last_known) {
      await one('seed', tenant_id, ({ run_id }) => [run_id, at, limit, last_known ?? '']);
    },
    async extend(tenant_id, limit) {
      await one('extend', tenant_id, ({ run_id }) => [run_id, limit]);
    },

    async read(tenant_id, after, { limit, max_bytes = Number.MAX_SAFE_INTEGER, compact = false }) {
      const [next, head, floor, known, trusted, flat] = await link.run('read', (line) =>
        script<ReadReply>(line, 'read', tenant_id, [line.run_id, after, limit, max_bytes, compact ? '1' : '0'], true),
      );
      const entries: OutboxEntry[] = [];
      for (let i = 0; i < flat.length; i += 4) entries.push(entryOf(flat, i));
      return {
        entries,
        next,
        head,
        floor,
        ...(known < 0 ? {} : { last_known: known }),
        ...(trusted === 1 ? {} : { unseeded: true }),
      };
    },
    heads: (tenant_ids) =>
      many('heads', tenant_ids, async (line, tenant_id) => Number((await line.client.hget(keyOf(tenant_id, 'seq'), 'head')) ?? 0)),
    async forget(tenant_id, what) {
      if ('message_ids' in what) return what.message_ids.length === 0 ? 0 : one<number>('forget', tenant_id, () => [...what.message_ids]);
      if (what.lane === '') return 0;
      let gone = 0;
      // What is appended from now on is not meant.
      const last = Number((await link.run('forget-lane', ({ client }) => client.hget(keyOf(tenant_id, 'seq'), 'head'))) ?? 0);
      for (let from = 1; from !== 0; ) {
        const args = [what.lane, from, last, entriesPerCall];
        const [some, next] = await one<[number, Cursor]>('forget-lane', tenant_id, () => args);
        gone += some;
        from = next;
      }
      return gone;
    },
    async trim(tenant_id, { max_frames, before_ms }) {
      for (;;) {
        const args = [max_frames, before_ms, entriesPerCall];
        const [floor, more] = await one<[Cursor, number]>('trim', tenant_id, () => args);
        if (more === 0) return floor;
      }
    },

    async register(tenant_id, device) {
      const { device_id, edge_id, connection_id, watermark } = device;
      const reply = await one<string | [Cursor, Cursor, Cursor, string, string]>('register', tenant_id, ({ run_id }) => [
        ...[run_id, device_id, edge_id, connection_id],
        ...[watermark, device.new ? '1' : '0', lease_ms],
      ]);
      if (typeof reply === 'string') return refusalOf(reply);
      const [head, floor, mark, edge, connection] = reply;
      const replaced = connection === '' ? {} : { replaced: { edge_id: edge as EdgeId, connection_id: connection as ConnectionId } };
      return { head, floor, watermark: mark, ...replaced };
    },
    async unregister(tenant_id, { device_id, connection_id }) {
      await one('unregister', tenant_id, () => [device_id, connection_id]);
    },
    async refresh(edge_id, held) {
      const calls = perTenant(held, devicesPerCall);
      const moved = await many('refresh', calls, (line, [tenant_id, devices]) =>
        script<string[]>(line, 'refresh', tenant_id, [edge_id, lease_ms, ...devices.flatMap((one) => [one.device_id, one.connection_id])]),
      );
      return moved.flat() as ConnectionId[];
    },

    async confirm(marks) {
      await many('confirm', perTenant(marks, devicesPerCall), (line, [tenant_id, devices]) =>
        script(
          line,
          'confirm',
          tenant_id,
          devices.flatMap((one) => [one.device_id, one.cursor]),
        ),
      );
    },
    async watermark(tenant_id, device_id) {
      const mark = await link.run('watermark', ({ client }) => client.hget(keyOf(tenant_id, 'marks'), device_id));
      return mark === null ? undefined : Number(mark);
    },
    async devices(tenant_id) {
      const flat = await one<(string | number)[]>('devices', tenant_id, () => []);
      return Array.from({ length: flat.length / 4 }, (_, i) => {
        const [device_id, watermark, edge_id, connection_id] = flat.slice(4 * i) as [DeviceId, Cursor, EdgeId, ConnectionId];
        return { device_id, watermark, ...(connection_id.length === 0 ? {} : { edge_id, connection_id }) };
      });
    },

    attempt: (of, { per_minute, burst }, count = 1) =>
      link.run('attempt', (line) => scriptOn<number>(line, 'attempt', [attemptsKey(of)], [60_000 / per_minute, burst, count])),

    async put(tenant_id, values) {
      const entries = Object.entries(values);
      const set = entries.filter((entry): entry is [string, string] => entry[1] !== null);
      const removed = entries.filter(([, value]) => value === null).map(([name]) => name);
      await one('put', tenant_id, () => [set.length, ...set.flat(), ...removed]);
    },
    values: async (tenant_id) =>
      new Map(Object.entries(await link.run('values', ({ client }) => client.hgetall(keyOf(tenant_id, 'values'))))),
    async drop(tenant_id) {
      await link.run('drop', ({ client }) => client.unlink(keyNames.map((key) => keyOf(tenant_id, key))));
    },

    get connected() {
      return link.connected;
    },
    onReconnected: (listener) => link.onReconnected(listener),
    close: () => link.close(),
  };
}

/** One group per tenant, none longer than `most`. */
function perTenant<T extends { readonly tenant_id: TenantId }>(items: readonly T[], most: number): [TenantId, T[]][] {
  const open = new Map<TenantId, T[]>();
  const groups: [TenantId, T[]][] = [];
  for (const item of items) {
    let group = open.get(item.tenant_id);
    if (group === undefined || group.length === most) {
      group = [];
      open.set(item.tenant_id, group);
      groups.push([item.tenant_id, group]);
    }
    group.push(item);
  }
  return groups;
}

type AppendReply = string | [previous: Cursor, cursors: Cursor[], edges: EdgeId[]];

function appendArgs({ run_id }: Line, { frames, max_frames }: AppendBatch): Argument[] {
  const args: Argument[] = [run_id, max_frames, keyKept_ms];
  for (const frame of frames) {
    const { key = '', message_ids = [], lane = '', supersedes = '', body } = frame;
    args.push(key, message_ids.join('\n'), lane, supersedes, headOf(frame), Buffer.from(body.buffer, body.byteOffset, body.byteLength));
  }
  return args;
}

function appendedOf(reply: AppendReply): Appended | OutboxRefusal {
  if (typeof reply === 'string') return refusalOf(reply);
  const [previous, cursors, edges] = reply;
  return { cursors: cursors.map(Math.abs), fresh: cursors.map((cursor) => cursor > 0), previous, edges };
}

function refusalOf(reply: string): OutboxRefusal {
  if (reply === 'unseeded' || reply === 'exhausted') return { refused: reply };
  throw new Error(`an unknown refusal: ${reply}`);
}

/** What a reader needs beside the body, and no script looks at: whether to push, the type, and after a newline the device left out. */
const headOf = ({ push, type, except_device_id }: AppendFrame): string =>
  `${push ? 1 : 0}${type}${except_device_id === undefined ? '' : `\n${except_device_id}`}`;

type ReadReply = [next: Cursor, head: Cursor, floor: Cursor, known: Cursor, trusted: number, entries: (number | Buffer)[]];

function entryOf(flat: readonly (number | Buffer)[], at: number): OutboxEntry {
  const [cursor, headField, ids, body] = flat.slice(at, at + 4) as [Cursor, Buffer, Buffer, Buffer];
  const head = headField.toString();
  const split = head.indexOf('\n');
  const message_id = ids.toString().split('\n')[0];
  return {
    cursor,
    type: head.slice(1, split < 0 ? undefined : split),
    ...(message_id === '' || message_id === undefined ? {} : { message_id }),
    ...(split < 0 ? {} : { except_device_id: head.slice(split + 1) as DeviceId }),
    push: head[0] === '1',
    // A copy: the reply's buffer may be a view into a large read of the socket, kept alive by each entry.
    body: new Uint8Array(body),
  };
}
