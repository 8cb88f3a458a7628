import { type AnyFrame, faultOf, type Match, matcher, type Payload, showFrame } from './frames.js';
import { type Patience, type Recording, record } from './record.js';
import type { Dial, Wire } from './wire.js';

/** How a frame came: in answer to a request of this device, replayed by `sync`, or by itself. */
export type Source = 'answer' | 'sync' | 'live';

export interface Received {
  /** Counts the device's connections from 1. */
  readonly connection: number;
  readonly source: Source;
  /** The `sync` that is under way, the first of several. */
  readonly sync?: number | string;
  readonly at: number;
  /** Binary messages of the connection that came before it; absent: unknown. */
  readonly binaries?: number;
  readonly frame: AnyFrame;
}

/** A request with an `id`, and everything that came with that `id` on its connection. */
export interface Asked {
  readonly connection: number;
  readonly id: number | string;
  readonly type: string;
  readonly chat_id?: string;
  readonly payload: Payload;
  readonly at: number;
  readonly answers: AnyFrame[];
}

export interface Connection {
  readonly number: number;
  readonly edge?: string;
  ack?: AnyFrame;
  /** The last `sync.done` cursor, if there was one: only then may later cursors be acknowledged. */
  synced?: number;
  closed?: { readonly code: number; readonly reason: string };
}

export interface Scope {
  readonly chat_id?: string;
  readonly thread_id?: string | null;
}
export interface Limit {
  /** Milliseconds, virtual in a world. */
  readonly within_ms?: number;
}

export interface TestDeviceOptions {
  readonly dial: Dial;
  readonly patience: Patience;
  readonly token: string;
  readonly device_id: string;
  readonly caps?: Record<string, unknown>;
  readonly device_name?: string;
}

/** A device that speaks the protocol's verbs, keeps everything it hears, and misbehaves on request. */
export interface TestDevice {
  readonly device_id: string;
  readonly token: string;
  readonly caps: Readonly<Record<string, unknown>>;
  readonly received: Recording<Received>;
  readonly asked: readonly Asked[];
  readonly connections: readonly Connection[];
  /** Binary messages of the current connection. */
  readonly binary: readonly Uint8Array[];
  /** What the gateway sent that the frame table does not allow. Must stay empty. */
  readonly faults: readonly string[];
  readonly connected: boolean;

  /** Open a socket, through another door if given; says nothing yet. */
  connect(dial?: Dial): Promise<Connection>;
  /** First frame: resolves with `hello.ack` or `error`. */
  hello(payload?: Payload, limit?: Limit): Promise<AnyFrame>;
  /** `connect` and `hello`. */
  join(dial?: Dial): Promise<AnyFrame>;
  /** A request with an id; resolves with what answers it, `error` included. */
  request(type: string, payload?: Payload, scope?: Scope & Limit & { id?: number | string }): Promise<AnyFrame>;
  /** A frame without id. */
  say(type: string, payload?: Payload, scope?: Scope): void;
  /** Any text or bytes at all. */
  raw(data: string | Uint8Array, as?: 'text' | 'binary'): void;
  send(text: string, more?: Payload & Scope & Limit): Promise<AnyFrame>;
  /** Without a cursor: from the watermark. Resolves with `sync.done`. */
  sync(cursor?: number, limit?: Limit): Promise<AnyFrame>;
  history(scope: Scope & { before_message_id?: string; limit?: number }): Promise<AnyFrame>;
  /** Every finished message of a lane, by pages, oldest first. */
  historyAll(scope: Scope, page?: number): Promise<Payload[]>;
  /** The next frame that matches, from where the test has looked up to. */
  next(match: Match, limit?: Limit): Promise<AnyFrame>;
  /** Resolves when this connection is closed, by whomever. */
  closed(limit?: Limit): Promise<{ code: number; reason: string }>;
  frames(match?: Match): AnyFrame[];

  pause(): void;
  resume(): void;
  /** Whether pings are answered; what was not answered stays unanswered. */
  autoPong(on: boolean): void;
  /** A WebSocket ping of its own. */
  ping(): void;
  /** With cap `cursors`: whether received cursors are acknowledged. Default true. */
  autoAck(on: boolean): void;
  close(code?: number): void;
  cut(options?: { silent?: boolean }): void;
}

export function testDevice(options: TestDeviceOptions): TestDevice {
  const { patience } = options;
  const received = record<Received>(patience, ({ connection, source, frame }) => `#${connection} ${source} ${showFrame(frame)}`);
  const asked: Asked[] = [];
  const connections: Connection[] = [];
  const faults: string[] = [];
  let binary: Uint8Array[] = [];
  let wire: Wire | undefined;
  let pong = true;
  let ack = true;
  /** Far from those that tests choose themselves. */
  let ids = 1_000;
  const open = new Map<number | string, Asked>();
  let syncs: (number | string)[] = [];
  const wantsCursors = () => options.caps?.cursors === true;

  const hear = (connection: Connection, data: string | Uint8Array) => {
    if (typeof data !== 'string') {
      binary.push(data);
      patience.stir();
      return;
    }
    const frame = JSON.parse(data) as AnyFrame;
    const fault = faultOf(frame, 'down');
    if (fault !== undefined) faults.push(`${fault}: ${data.slice(0, 200)}`);
    const question = frame.id === undefined ? undefined : open.get(frame.id);
    if (frame.id !== undefined && question === undefined) faults.push(`an answer to nothing: ${data.slice(0, 200)}`);
    question?.answers.push(frame);
    if (question?.type === 'sync') syncs.shift();
    if (frame.type === 'sync.done') connection.synced = frame.payload.cursor ?? 0;
    if (frame.type === 'hello.ack') connection.ack = frame;
    const source: Source = question ? 'answer' : frame.cursor !== undefined && syncs.length > 0 ? 'sync' : 'live';
    const sync = syncs[0] === undefined ? {} : { sync: syncs[0] };
    received.add({ connection: connection.number, source, ...sync, at: patience.now(), binaries: binary.length, frame });
    // Before `sync` something below may be missing, and an acknowledgement would give it up.
    const stored =
      connection.synced === undefined ? undefined : (frame.cursor ?? (frame.type === 'sync.done' ? frame.payload.cursor : undefined));
    if (stored !== undefined && wantsCursors() && ack) self.say('ack', { cursor: stored });
  };
  const envelope = (type: string, payload: Payload, { chat_id, thread_id }: Scope, id?: number | string) =>
    JSON.stringify({
      v: 1,
      ...(id === undefined ? {} : { id }),
      type,
      ...(chat_id === undefined ? {} : { chat_id }),
      ...(thread_id === undefined ? {} : { thread_id }),
      payload,
    });
  const current = (): Connection => {
    const connection = connections.at(-1);
    if (connection === undefined) throw new Error(`${options.device_id} has not connected`);
    return connection;
  };
  const transmit = (data: string | Uint8Array, as?: 'text' | 'binary') => {
    if (wire === undefined) throw new Error(`${options.device_id} has not connected`);
    wire.send(data, as);
  };
  const ask = (id: number | string, type: string, payload: Payload, chat_id: string | undefined): Asked => {
    const scope = chat_id === undefined ? {} : { chat_id };
    const question: Asked = { connection: current().number, id, type, ...scope, payload, at: patience.now(), answers: [] };
    asked.push(question);
    open.set(id, question);
    return question;
  };
  const answerOf = (question: Asked, limit: Limit) => {
    const connection = current();
    return patience.wait(
      () => {
        if (question.answers[0] === undefined && connection.closed)
          throw new Error(`${question.type} ${question.id}: closed with ${connection.closed.code} before an answer`);
        return question.answers[0];
      },
      { within_ms: limit.within_ms, describe: () => `no answer to ${question.type} ${JSON.stringify(question.payload)}` },
    );
  };

  const self: TestDevice = {
    device_id: options.device_id,
    token: options.token,
    caps: options.caps ?? {},
    received,
    asked,
    connections,
    get binary() {
      return binary;
    },
    faults,
    get connected() {
      return connections.length > 0 && connections.at(-1)!.closed === undefined;
    },
    async connect(dial = options.dial) {
      const connection: Connection = { number: connections.length + 1 };
      connections.push(connection);
      open.clear();
      syncs = [];
      binary = [];
      wire = undefined;
      let mine: Wire | undefined;
      const opening = dial({
        message: (data) => hear(connection, data),
        ping(data) {
          if (pong) mine?.pong(data);
        },
        closed(code, reason) {
          connection.closed = { code, reason };
          patience.stir();
        },
      });
      try {
        mine = await opening;
      } catch (error) {
        connection.closed ??= { code: 1006, reason: 'refused' };
        throw error;
      }
      wire = mine;
      return connection;
    },
    hello(payload = {}, limit = {}) {
      const { device_id, token, caps, device_name } = options;
      const connection = current();
      const from = received.all.length;
      const name = device_name === undefined ? {} : { device_name };
      self.say('hello', { token, device_id, ...name, caps: { min_protocol: 1, ...caps }, ...payload });
      return patience.wait(
        () => {
          const answer = received.all.slice(from).find(({ frame }) => frame.type === 'hello.ack' || frame.type === 'error')?.frame;
          if (answer === undefined && connection.closed) throw new Error(`closed with ${connection.closed.code} before hello.ack`);
          return answer;
        },
        { within_ms: limit.within_ms, describe: () => `no answer to hello of ${device_id}` },
      );
    },
    async join(dial) {
      await self.connect(dial);
      return self.hello();
    },
    request(type, payload = {}, { id = ++ids, within_ms, ...scope } = {}) {
      // While it is between two connections nothing is said, and so nothing was asked.
      if (wire === undefined) return Promise.reject(new Error(`${options.device_id} is not connected`));
      const question = ask(id, type, payload, scope.chat_id);
      if (type === 'sync') syncs.push(id);
      transmit(envelope(type, payload, scope, id));
      return answerOf(question, within_ms === undefined ? {} : { within_ms });
    },
    say: (type, payload = {}, scope = {}) => transmit(envelope(type, payload, scope)),
    raw(data, as) {
      const given = typeof data === 'string' ? requestIn(data) : undefined;
      if (given) ask(given.id, given.type, {}, undefined);
      transmit(data, as);
    },
    send(text, { chat_id, thread_id, within_ms, ...payload } = {}) {
      const scope = { ...(chat_id === undefined ? {} : { chat_id }), ...(thread_id === undefined ? {} : { thread_id }) };
      return self.request('message.send', { text, ...payload }, { ...scope, ...(within_ms === undefined ? {} : { within_ms }) });
    },
    sync: (cursor, limit = {}) => self.request('sync', cursor === undefined ? {} : { cursor }, limit),
    history: ({ before_message_id, limit, ...scope }) =>
      self.request(
        'history',
        { ...(before_message_id === undefined ? {} : { before_message_id }), ...(limit === undefined ? {} : { limit }) },
        scope,
      ),
    async historyAll(scope, page = 200) {
      let all: Payload[] = [];
      for (let before: string | undefined; ; ) {
        const answer = await self.history({ ...scope, limit: page, ...(before === undefined ? {} : { before_message_id: before }) });
        if (answer.type !== 'history') throw new Error(`history was answered with ${showFrame(answer)}`);
        const messages = answer.payload.messages ?? [];
        all = [...messages, ...all];
        if (answer.payload.has_more !== true) return all;
        before = messages[0]?.message_id;
        if (before === undefined) throw new Error('an empty page that says has_more');
      }
    },
    async next(match, { within_ms } = {}) {
      const matches = matcher(match);
      const what = typeof match === 'function' ? match.toString() : String(match);
      return (await received.next(({ frame }) => matches(frame), { within_ms, what: `${options.device_id}: ${what}` })).frame;
    },
    closed({ within_ms } = {}) {
      const connection = current();
      return patience.wait(() => connection.closed, { within_ms, describe: () => `${options.device_id} is still connected` });
    },
    frames(match = () => true) {
      const matches = matcher(match);
      return received.all.map(({ frame }) => frame).filter(matches);
    },
    pause: () => wire?.pause(),
    resume: () => wire?.resume(),
    autoPong: (on) => {
      pong = on;
    },
    ping: () => wire?.ping(),
    autoAck: (on) => {
      ack = on;
    },
    close: (code) => wire?.close(code),
    cut: (how) => wire?.cut(how),
  };
  return self;
}

/** What may be answered by its `id`, of a text that may be anything. */
function requestIn(text: string): { id: number | string; type: string } | undefined {
  try {
    const { id, type } = JSON.parse(text) as { id?: unknown; type?: unknown };
    const usable = typeof id === 'string' ? id.length >= 1 && id.length <= 64 : Number.isSafeInteger(id);
    return usable ? { id: id as number | string, type: String(type) } : undefined;
  } catch {
    const id = /^\{"id":(\d+),/.exec(text)?.[1];
    return id === undefined ? undefined : { id: Number(id), type: 'raw' };
  }
}
