import {
  type AgentHelloAnswer,
  type Announcer,
  announceSession,
  type HelloAnswer,
  type MemoryBus,
  pack,
  subjects,
  type ToEdge,
  type ToSession,
  unpack,
} from '@iris/bus';
import type { AppendFrame, MemoryOutbox } from '@iris/outbox';
import type { AgentId, Cursor, DeviceId, EdgeId, SessionId, TenantId } from '@iris/protocol';
import type { Clock } from '@iris/runtime';

export type Request = Extract<ToSession, { kind: 'request' }>;
export type Update = Extract<ToSession, { kind: 'update' }>;
type Answer = Extract<ToEdge, { kind: 'answer' }>;
type Durable = Extract<ToEdge, { kind: 'durable' }>;

export const tenant = 'tn1' as TenantId;
export const deviceToken = `iris-device.${tenant}.0123456789abcdef`;
export const agentToken = `iris-agent.${tenant}.0123456789abcdef`;
export const edgeId = 'e1' as EdgeId;

/** A session instance that does what the test says: hellos are answered from a real outbox, the rest is kept. */
export interface ScriptedSession {
  readonly session_id: SessionId;
  readonly requests: Request[];
  readonly updates: Update[];
  readonly others: ToSession[];
  /** Of requests that were kept: type → what is answered at once. */
  readonly handlers: Map<string, (request: Request) => Partial<Answer> | undefined>;
  /** Change what the next hellos are answered. */
  helloWith: Partial<HelloAnswer>;
  agentWith: Partial<AgentHelloAnswer>;
  /** Do not answer hellos. */
  deaf: boolean;
  answer(request: Request, answer: Partial<Answer>): void;
  publish(...records: ToEdge[]): void;
  /** Append frames; publish those that are not `lost`, all in one bus message. */
  emit(...frames: EmitFrame[]): Promise<Cursor[]>;
  /** Stop serving, without a word. */
  die(): void;
  leave(): void;
}

export interface EmitFrame extends Partial<AppendFrame> {
  readonly frame: Record<string, unknown>;
  readonly lost?: boolean;
  readonly origin?: Durable['origin'];
  readonly message_id?: string;
}

const utf8 = new TextEncoder();
export const bytes = (frame: Record<string, unknown>): Uint8Array => utf8.encode(JSON.stringify({ v: 1, ...frame }));
export const bodyOf = (record: { body: Uint8Array }) => JSON.parse(Buffer.from(record.body).toString());

export const quotas = { frames_per_second: 100, frames_burst: 1_000, sends_per_second: 20, sends_burst: 300 };

export function scriptedSession(deps: { bus: MemoryBus; outbox: MemoryOutbox; clock: Clock; session_id: string }): ScriptedSession {
  const { bus, outbox, clock } = deps;
  const session_id = deps.session_id as SessionId;
  const requests: Request[] = [];
  const updates: Update[] = [];
  const others: ToSession[] = [];
  let epoch = 0;

  const helloOf = async (request: Request): Promise<HelloAnswer> => {
    const { token, device_id } = bodyOf(request).payload as { token: string; device_id: DeviceId };
    const empty = { tenant_id: request.tenant_id, token_id: 'tk1', ack: {}, head: 0, watermark: 0, frames: [], quotas };
    if (request.tenant_id !== tenant || !token.startsWith(`iris-device.${tenant}.`) || token.endsWith('.wrong0000000000000'))
      return { ...empty, refused: { code: 'auth', message: 'token unknown' } };
    const known = (await outbox.watermark(request.tenant_id, device_id)) !== undefined;
    const registered = await outbox.register(request.tenant_id, {
      device_id,
      edge_id: request.edge_id,
      connection_id: request.connection_id,
      watermark: 0,
      new: !known,
    });
    if (registered.refused) throw new Error(registered.refused);
    const { head, watermark, replaced } = registered;
    if (replaced)
      bus.publish(
        subjects.edge(replaced.edge_id),
        pack([{ kind: 'close', connection_id: replaced.connection_id, code: 4409, reason: 'replaced', body: new Uint8Array() }]),
      );
    return {
      ...empty,
      ack: { server_caps: { media: false }, last_pushed_cursor: 0, channels: [] },
      head,
      watermark,
      frames: [],
      ...self.helloWith,
    };
  };
  const agentHello = (request: Request): AgentHelloAnswer => ({
    tenant_id: request.tenant_id,
    token_id: 'tk2',
    agent_id: 'ag1' as AgentId,
    epoch: ++epoch,
    frames: [JSON.stringify({ v: 1, type: 'hello.ack', payload: { link_id: 'l1', epoch } })],
    sent_seq: 0,
    ...self.agentWith,
  });

  const take = (record: ToSession) => {
    if (record.kind === 'update') return void updates.push(record);
    if (record.kind !== 'request') return void others.push(record);
    requests.push(record);
    if (record.type === 'hello') {
      if (self.deaf) return;
      if (record.peer === 'agent') return self.answer(record, { body: utf8.encode(JSON.stringify(agentHello(record))) });
      void helloOf(record).then((answer) => self.answer(record, { body: utf8.encode(JSON.stringify(answer)) }));
      return;
    }
    const said = self.handlers.get(record.type)?.(record);
    if (said !== undefined) self.answer(record, said);
  };
  const serving = bus.serve(subjects.session(session_id), (data) => {
    for (const record of unpack<ToSession>(data)) take({ ...record, body: record.body.slice() });
    return new Uint8Array();
  });
  const announcer: Announcer = announceSession({ bus, clock, session_id });

  const self: ScriptedSession = {
    session_id,
    requests,
    updates,
    others,
    handlers: new Map(),
    helloWith: {},
    agentWith: {},
    deaf: false,
    answer(request, answer) {
      const { connection_id, n, edge_id } = request;
      bus.publish(subjects.edge(edge_id), pack([{ kind: 'answer', connection_id, n, body: new Uint8Array(), ...answer }]));
    },
    publish: (...records) => bus.publish(subjects.edge(edgeId), pack(records)),
    async emit(...frames) {
      const result = await outbox.append([
        {
          tenant_id: tenant,
          max_frames: 100_000,
          frames: frames.map(({ frame, lost: _, origin: __, message_id, ...more }) => ({
            type: String(frame.type),
            push: false,
            body: bytes(frame),
            ...(message_id === undefined ? {} : { message_ids: [message_id] }),
            ...more,
          })),
        },
      ]);
      const [appended] = result;
      if (appended === undefined || appended.refused !== undefined) throw new Error('refused');
      let previous = appended.previous;
      const records: ToEdge[] = [];
      frames.forEach(({ frame, lost, origin, message_id, push = false, except_device_id }, i) => {
        const cursor = appended.cursors[i]!;
        const record: Durable = {
          kind: 'durable',
          tenant_id: tenant,
          cursor,
          previous,
          type: String(frame.type),
          push,
          body: bytes(frame),
          ...(message_id === undefined ? {} : { message_id }),
          ...(origin === undefined ? {} : { origin }),
          ...(except_device_id === undefined ? {} : { except_device_id }),
        };
        previous = cursor;
        if (!lost) records.push(record);
      });
      if (records.length > 0) self.publish(...records);
      return [...appended.cursors];
    },
    die() {
      serving.end();
      bus.setConnected(false);
    },
    leave: () => announcer.leave(),
  };
  return self;
}
