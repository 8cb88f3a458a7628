import { type AgentHelloAnswer, type HelloAnswer, type MemoryBus, pack, subjects, type ToEdge, type ToSession, unpack } from '@iris/bus';
import type { AgentId, ConnectionId, DeviceId, EdgeId, SessionId, TenantId } from '@iris/protocol';
import type { ManualClock } from '@iris/runtime/testing';
import type { Frame } from './rig.js';

type Answer = Extract<ToEdge, { kind: 'answer' }>;
type Scope = { readonly chat_id?: string; readonly thread_id?: string | null };
const tenant_id = 'tn1' as TenantId;
const edge_id = 'e1' as EdgeId;
const utf8 = new TextEncoder();
const bytes = (value: unknown): Uint8Array => utf8.encode(JSON.stringify(value));
export const parse = <T = Frame>(record: { readonly body: Uint8Array }): T => JSON.parse(Buffer.from(record.body).toString()) as T;

/** An edge on the bus that says what a test tells it, and keeps all that it hears. */
export function scriptedEdge({ bus, clock }: { bus: MemoryBus; clock: ManualClock }) {
  const heard: ToEdge[] = [];
  let session = 's1' as SessionId;
  let connections = 0;
  let updates = 0;
  bus.subscribe(subjects.edge(edge_id), (data) => {
    for (const record of unpack<ToEdge>(data)) heard.push({ ...record, body: record.body.slice() });
  });
  const send = (records: readonly ToSession[]) => {
    bus.request(subjects.session(session), pack(records), { timeout_ms: 1_000 }).catch(() => {});
  };
  const answersTo = (connection_id: string, n: number) =>
    heard.filter((record): record is Answer => record.kind === 'answer' && record.connection_id === connection_id && record.n === n);
  const durable = () => heard.filter((record) => record.kind === 'durable');
  /** The frame that answers, by whatever way. */
  const frameOf = (answer: Answer | undefined): Frame | undefined => {
    if (answer === undefined) return undefined;
    const placed = durable().find(({ cursor }) => cursor === answer.cursor);
    if (placed !== undefined) return parse(placed);
    return answer.body.length === 0 ? { type: 'done', payload: {} } : parse(answer);
  };

  const requester = (connection_id: string, more: Partial<Extract<ToSession, { kind: 'request' }>>) => {
    let n = 0;
    let base = 1;
    const sent = new Map<number, Extract<ToSession, { kind: 'request' }>>();
    const record = (type: string, body: Uint8Array): Extract<ToSession, { kind: 'request' }> => {
      n++;
      const one = {
        kind: 'request',
        tenant_id,
        edge_id,
        connection_id: connection_id as ConnectionId,
        n,
        base,
        peer: 'device',
        type,
        body,
        ...more,
      } as const;
      sent.set(n, one);
      return one;
    };
    return {
      connection_id,
      more,
      get n() {
        return n;
      },
      record,
      /** Send it again, as it was or with another base. */
      again: (which: number, change: { base?: number } = {}) => send([{ ...sent.get(which)!, ...change }]),
      answersTo: (which: number) => answersTo(connection_id, which),
      frameTo: (which: number) => frameOf(answersTo(connection_id, which)[0]),
      setBase: (next: number) => {
        base = next;
      },
      async ask(type: string, frame: Record<string, unknown>): Promise<Frame> {
        send([record(type, bytes({ v: 1, type, ...frame }))]);
        const which = n;
        await clock.settle();
        const answer = frameOf(answersTo(connection_id, which)[0]);
        if (answer === undefined) throw new Error(`${type} is not answered`);
        base = n + 1;
        return answer;
      },
    };
  };

  return {
    heard,
    send,
    durable,
    /** Durable frames in the order in which they were told. */
    frames: (type?: string) =>
      durable()
        .map(parse<Frame>)
        .filter((frame) => type === undefined || frame.type === type),
    ephemerals: () => heard.filter((record) => record.kind === 'ephemeral'),
    closes: () => heard.filter((record) => record.kind === 'close'),
    /** Which instance it sends to. */
    use: (name: string) => {
      session = name as SessionId;
    },
    device(device_id: string, token: string, connection_id = `c${++connections}`) {
      const request = requester(connection_id, { device_id: device_id as DeviceId });
      return {
        ...request,
        get n() {
          return request.n;
        },
        device_id,
        async hello(payload: Record<string, unknown> = {}): Promise<HelloAnswer> {
          return (await request.ask('hello', { payload: { token, device_id, ...payload } })) as unknown as HelloAnswer;
        },
        request: (type: string, payload: Record<string, unknown> = {}, scope: Scope = {}) =>
          request.ask(type, { id: 1, ...scope, payload }),
        send: (text: string, payload: Record<string, unknown> = {}, scope: Scope = {}) =>
          request.ask('message.send', { id: 1, ...scope, payload: { text, ...payload } }),
        /** A record, to be sent by the test. */
        make: (type: string, payload: Record<string, unknown> = {}, scope: Scope = {}) =>
          request.record(type, bytes({ v: 1, type, id: 1, ...scope, payload })),
        gone: () =>
          send([
            {
              kind: 'gone',
              tenant_id,
              edge_id,
              connection_id: connection_id as ConnectionId,
              peer: 'device',
              device_id: device_id as DeviceId,
              body: bytes({}),
            },
          ]),
      };
    },
    agent(token: string, options: { install_id?: string; boot_id?: string; connection_id?: string; seq?: number } = {}) {
      const connection_id = options.connection_id ?? `a${++connections}`;
      const more: { peer: 'agent'; agent_id?: AgentId; epoch?: number } = { peer: 'agent' };
      const request = requester(connection_id, more);
      let seq = options.seq ?? 0;
      const link = () => ({
        tenant_id,
        edge_id,
        connection_id: connection_id as ConnectionId,
        agent_id: more.agent_id!,
        epoch: more.epoch!,
      });
      const self = {
        connection_id,
        request,
        get seq() {
          return seq;
        },
        /** Frames for this link that came behind its hello. */
        received: () =>
          heard.flatMap((record) => (record.kind === 'agent' && record.connection_id === connection_id ? [parse(record)] : [])),
        async hello(payload: Record<string, unknown> = {}): Promise<AgentHelloAnswer & { readonly sent: readonly Frame[] }> {
          const answer = (await request.ask('hello', {
            payload: {
              token,
              agent: 'test',
              install_id: options.install_id ?? 'install',
              boot_id: options.boot_id ?? 'boot',
              caps: { stream: true, steer: true, stop: true },
              last_seq: 0,
              open_turns: [],
              ...payload,
            },
          })) as unknown as AgentHelloAnswer;
          more.agent_id = answer.agent_id;
          more.epoch = answer.epoch;
          return { ...answer, sent: answer.frames.map((frame) => JSON.parse(frame) as Frame) };
        },
        /** A durable frame, with the next `seq`. */
        say: (type: string, payload: Record<string, unknown> = {}, scope: Scope & { turn_id?: string; id?: string } = {}) =>
          request.ask(type, { seq: ++seq, ...scope, payload }),
        repeat: (which: number, type: string, payload: Record<string, unknown>, scope: Scope & { turn_id?: string } = {}) =>
          request.ask(type, { seq: which, ...scope, payload }),
        pass: (type: string, payload: Record<string, unknown> = {}, scope: Scope & { turn_id?: string; id?: string } = {}) =>
          request.ask(type, { ...scope, payload }),
        ack: (upTo: number) => request.ask('ack', { ack: upTo, payload: {} }),
        async update(type: string, payload: Record<string, unknown>, turn_id?: string) {
          const frame = { v: 1, type, ...(turn_id === undefined ? {} : { turn_id }), payload };
          send([{ kind: 'update', ...link(), after_n: request.n, order: ++updates, type, body: bytes(frame) }]);
          await clock.settle();
        },
        async held() {
          send([{ kind: 'held', ...link(), body: bytes({}) }]);
          await clock.settle();
        },
        async gone() {
          send([{ kind: 'gone', ...link(), peer: 'agent', body: bytes({}) }]);
          await clock.settle();
        },
        /** Every `turn.start` that this link was given, with its hello or after. */
        async turn(): Promise<Frame> {
          await clock.settle();
          const start = self
            .received()
            .filter(({ type }) => type === 'turn.start')
            .at(-1);
          if (start === undefined) throw new Error('no turn was offered');
          return start;
        },
      };
      return self;
    },
  };
}
