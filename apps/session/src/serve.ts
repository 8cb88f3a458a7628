import { isMediaAsk, passedOver, pushAnswer as pushAnswerType, type ToSession, unpack } from '@iris/bus';
import { type ConnectionId, type DownFrame, decode, decodeAgent, encode, RequestError, rowOf, unsupported } from '@iris/protocol';
import type { Meter } from '@iris/runtime';
import { agentHello } from './agent/hello.js';
import { agentRequest } from './agent/request.js';
import { agentUpdate } from './agent/update-frames.js';
import { type Answer, type Context, done } from './context.js';
import { deviceHandler } from './handlers/index.js';
import { quotasOf } from './handlers/lookup.js';
import { createLine, type Line, type Outcome, type Request } from './line.js';
import { answerMediaAsk } from './media/asks.js';
import type { Outgoing } from './outgoing.js';
import { type Patience, Unavailable } from './patience.js';
import { pushAnswer } from './push-answer.js';
import { stallWatch } from './stall.js';
import { createTurnstile } from './turnstile.js';

export interface Serve {
  /** One bus message of an edge. The answer says that it is here. */
  accept(data: Uint8Array): Uint8Array;
  /** Everything that came is answered, or will not be. */
  readonly idle: boolean;
  /** Connections that are remembered. */
  readonly size: number;
  stop(): void;
}

const accepted = new Uint8Array();
const text = new TextDecoder();
const utf8 = new TextEncoder();
const mediaAsk_ms = 10_000;
const pushAnswer_ms = 10_000;

/**
 * Hop one arrives here: requests are put in their connections' order, handled, and answered. The only place that catches: what a handler
 * throws becomes an `error`, and what is no {@link RequestError} becomes `internal`, with its cause in the log.
 */
export function createServe(deps: {
  context: Context;
  outgoing: Outgoing;
  meter: Meter;
  patience: Patience;
  /** The instance is on its way out: what fails now is left to the next. */
  stopping: () => boolean;
  /** An agent's link was heard of. */
  heard: (tenant_id: ToSession['tenant_id']) => void;
}): Serve {
  const { context, outgoing, meter } = deps;
  const { clock, log, config } = context;
  const lines = new Map<ConnectionId, { line: Line; usedAt: number }>();
  const handled = meter.counter('iris_session_handled_total');
  const seconds = meter.histogram('iris_session_handle_seconds');

  const turnstile = createTurnstile(config, context.directory.weightOf);
  const run = (request: Request, entered: () => void): Promise<Outcome> => {
    const begun = clock.now();
    return turnstile(request, () => attempt(request, entered, begun));
  };
  const attempt = async (request: Request, entered: () => void, begun: number): Promise<Outcome> => {
    const count = (outcome: string) => {
      handled.add(1, { type: rowOf(request.type) === undefined && !isMediaAsk(request.type) ? 'unknown' : request.type, outcome });
      seconds.record((clock.now() - begun) / 1_000, { type: request.type });
    };
    try {
      // A store that fails before anything was decided is asked again with the whole of it: every step is idempotent.
      const deadline =
        request.peer === 'device'
          ? begun + (isMediaAsk(request.type) ? mediaAsk_ms : (rowOf(request.type)?.up?.deadline_ms ?? pushAnswer_ms))
          : undefined;
      const handle = () => (deadline === undefined ? agent(request, entered, context) : device(request, deadline, entered, context));
      const answer = await deps.patience.persist(handle, { deadline, what: request.type });
      count('ok');
      return answer;
    } catch (error) {
      if (error instanceof RequestError) {
        count(error.code);
        return { kind: 'frame', frame: errorFrame(error) };
      }
      count('internal');
      const fields = { type: request.type, tenant_id: request.tenant_id, connection_id: request.connection_id, n: request.n, error };
      if (error instanceof Unavailable) log.warn('session.unavailable', fields);
      else log.error('session.failed', fields);
      if (deps.stopping()) return 'abandoned';
      return { kind: 'frame', frame: errorFrame(new RequestError('internal', 'try again')) };
    }
  };
  const say = ({ edge_id, connection_id }: ToSession, n: number, answer: Answer, again: boolean) => {
    const record = { kind: 'answer', connection_id, n } as const;
    switch (answer.kind) {
      case 'done':
        return outgoing.to(edge_id, { ...record, body: accepted });
      case 'frame':
        return outgoing.to(edge_id, { ...record, body: encode(answer.frame) });
      case 'placed':
        return outgoing.to(edge_id, { ...record, cursor: answer.cursor, body: again || !answer.fresh ? answer.body : accepted });
      case 'body':
        return outgoing.to(edge_id, { ...record, body: answer.body });
      case 'said':
        if (again) outgoing.to(edge_id, { ...record, body: answer.body });
    }
  };
  const lineOf = (record: ToSession, base: number): Line => {
    const { connection_id } = record;
    let entry = lines.get(connection_id);
    if (entry === undefined) {
      const line = createLine({
        base,
        pipelined: isPipelined,
        run,
        answer: (n, answer, again) => say(record, n, answer, again),
        update: (update) => {
          if (update.kind !== 'update') return;
          applyUpdate(update, context).catch((error: unknown) => log.warn('session.update_failed', { type: update.type, error }));
        },
        skipped: () => context.rooms.forget(record.tenant_id),
      });
      entry = { line, usedAt: 0 };
      lines.set(connection_id, entry);
    }
    entry.usedAt = clock.now();
    return entry.line;
  };
  const take = (record: ToSession) => {
    switch (record.kind) {
      case 'request':
        return lineOf(record, record.base).take(record);
      case 'update':
        return lineOf(record, record.after_n + 1).update(record);
      case 'held':
        return void context.links
          .held(record)
          .then(() => deps.heard(record.tenant_id))
          .catch((error: unknown) => log.warn('session.held_failed', { error }));
      case 'gone':
        return gone(record);
    }
  };
  const gone = (record: Extract<ToSession, { kind: 'gone' }>) => {
    lines.delete(record.connection_id);
    const { tenant_id, connection_id, device_id, agent_id, epoch } = record;
    if (device_id !== undefined) context.presence.went(tenant_id, device_id, connection_id);
    if (agent_id !== undefined && epoch !== undefined)
      context.links
        .gone({ tenant_id, agent_id, epoch, connection_id })
        .catch((error: unknown) => log.warn('session.gone_failed', { error }));
  };
  const stall = stallWatch(clock);
  const sweep = clock.every(config.idle_ms, () => {
    for (const [connection_id, { line, usedAt }] of lines)
      if (line.idle && usedAt < clock.now() - config.idle_ms) lines.delete(connection_id);
  });

  return {
    accept(data) {
      const stale = stall.doubtful();
      // Bodies are views: one copy for the whole message, since the bus may use its bytes again.
      for (const record of unpack<ToSession>(data.slice())) if (!stale || record.kind !== 'request') take(record);
      return accepted;
    },
    get idle() {
      return [...lines.values()].every(({ line }) => line.idle);
    },
    get size() {
      return lines.size;
    },
    stop() {
      sweep.cancel();
      stall.end();
    },
  };
}

const errorFrame = ({ code, message, retry_after_ms }: RequestError): DownFrame => ({
  type: 'error',
  payload: { code, message, ...(retry_after_ms === undefined ? {} : { retry_after_ms }) },
});

/** Of an agent, everything that is numbered: its effect is decided in the tenant's order, which is its own. */
function isPipelined({ peer, type }: Request): boolean {
  const row = rowOf(type);
  return peer === 'device' ? row?.up?.pipelined === true : row?.agent_up?.durable === true;
}

async function device(request: Request, deadline: number, entered: () => void, context: Context): Promise<Answer> {
  if (request.type === pushAnswerType && request.device_id === undefined) return pushAnswer(request, deadline, context);
  const { tenant_id, edge_id, connection_id, n } = request;
  if (isMediaAsk(request.type)) {
    const answer = await answerMediaAsk(request.type, tenant_id, JSON.parse(text.decode(request.body)), context);
    return { kind: 'body', body: utf8.encode(JSON.stringify(answer)) };
  }
  const decoded = decode(text.decode(request.body));
  if (decoded.kind !== 'frame') throw unsupported(decoded.message);
  const { frame } = decoded;
  const handle = deviceHandler(frame.type);
  if (handle === undefined) throw unsupported('type: not handled here');
  const device_id = frame.type === 'hello' ? (frame.payload.device_id as NonNullable<Request['device_id']>) : request.device_id;
  if (device_id === undefined) throw new RequestError('auth', 'hello first');
  if (frame.type !== 'hello') context.rates.take(request, device_id, await quotasOf(tenant_id, context));
  return handle(
    {
      tenant_id,
      edge_id,
      connection_id,
      device_id,
      origin: { edge_id, connection_id, n },
      key: `${connection_id}:${n}`,
      deadline,
      entered,
      frame,
    },
    context,
  );
}

async function agent(request: Request, entered: () => void, context: Context): Promise<Answer> {
  const { tenant_id, edge_id, connection_id, n, agent_id, epoch } = request;
  const decoded = decodeAgent(text.decode(request.body));
  if (request.type === passedOver || decoded.kind !== 'frame')
    return refuse(request, decoded.kind === 'frame' ? { message: 'not handled here', ...seqOf(decoded.frame) } : decoded, context);
  const { frame } = decoded;
  const origin = { edge_id, connection_id, n };
  if (frame.type === 'hello') return agentHello({ tenant_id, origin, frame, entered }, context);
  if (agent_id === undefined || epoch === undefined) throw new RequestError('auth', 'hello first');
  const link = await context.links.admit({ tenant_id, agent_id, epoch, edge_id, connection_id });
  if (link === undefined) throw new RequestError('auth', 'a newer link of this agent took over');
  const key = frame.seq === undefined ? `${connection_id}:${n}` : `${agent_id}:${link.install_id}:${frame.seq}`;
  return agentRequest({ tenant_id, edge_id, connection_id, agent_id, origin, key, link, frame, entered }, context);
}

const seqOf = ({ seq }: { readonly seq?: number }) => (seq === undefined ? {} : { seq });

/** A numbered frame that says nothing we understand is processed all the same: it would say no more the next time. */
async function refuse(request: Request, decoded: { kind?: string; message: string; seq?: number }, context: Context): Promise<Answer> {
  const { agent_id, epoch } = request;
  if (decoded.seq !== undefined && agent_id !== undefined && epoch !== undefined) {
    const link = await context.links.admit({ ...request, agent_id, epoch });
    if (link !== undefined) context.links.processed(link, decoded.seq);
  }
  // The edge has told the agent what was wrong with it.
  if (request.type === passedOver || decoded.kind === 'unknown') return done;
  throw unsupported(decoded.message);
}

async function applyUpdate(update: Extract<ToSession, { kind: 'update' }>, context: Context): Promise<void> {
  const link = await context.links.admit(update);
  const decoded = decodeAgent(text.decode(update.body));
  if (link !== undefined && decoded.kind === 'frame') await agentUpdate(link, decoded.frame, update.order, context);
}
