import { notFound, unsupported } from '@iris/protocol';
import type { MessageRow, NewTurn } from '@iris/store';
import type { Answer, Context, DeviceRequest } from '../context.js';
import type { Effects, Emission, Placed, StoredMessage } from '../emission.js';
import { messageOut } from '../rules/frames.js';
import { clientKey, messageIdOf } from '../rules/ids.js';
import { messageRow, newTurn } from '../rules/rows.js';
import { checkSend, type Plan } from './send-checks.js';
import { sendSpecial } from './send-special.js';

type Request = DeviceRequest<'message.send'>;

/**
 * A person says something. It is stored with its turn in one step, and its echo is the answer. What the turn's start needs of the store comes
 * behind it in the tenant's order, so that nobody waits for it.
 */
export async function messageSend(request: Request, context: Context): Promise<Answer> {
  const { client_ref } = request.frame.payload;
  for (let generation = 0; ; generation++) {
    const key = client_ref === undefined ? request.key : clientKey(request.device_id, client_ref, generation);
    const answer = await send(request, key, context);
    if (answer !== 'stale') return answer;
  }
}

/** @returns `stale` when the key is that of a message too old to be the same one */
async function send(request: Request, key: string, context: Context): Promise<Answer | 'stale'> {
  const { tenant_id, deadline, origin, frame } = request;
  const { emitter, turns, log } = context;
  const plan = await planOf(request, key, context);
  if ('stored' in plan) return again(request, plan.stored, context);

  const draft = draftOf(request, key, plan, context);
  let outcome: MessageRow | 'stale' | undefined;
  const keep = (stored: StoredMessage): MessageRow | 'stale' => {
    outcome = kept(stored, request, context);
    return outcome;
  };
  const echo = (row: MessageRow | 'stale') => echoOf(row, origin, context);
  const plain = frame.payload.auto_thread !== true && plan.media_refs.length === 0 && plan.clarify === undefined;
  const emission: Emission = plain
    ? { kind: 'message', tenant_id, deadline, row: draft, effects: (stored) => echo(keep(stored)) }
    : {
        kind: 'change',
        tenant_id,
        deadline,
        // Whether the question is open still must not be half decided.
        ...(plan.clarify === undefined ? {} : { place: 'alone' as const }),
        run: () => sendSpecial(request, plan, { ...draft, key }, { keep, echo }, context),
      };
  const placing = emitter.emit(emission);
  // Behind it in the tenant's order, before whatever else is emitted from now on.
  if (plan.kind === 'stop') turns.stop(tenant_id, plan.lane).catch((error: unknown) => log.error('session.stop_failed', { error }));
  else turns.advance(tenant_id, () => (outcome === 'stale' ? undefined : outcome));
  request.entered();
  const placed = (await placing).at(-1);
  return outcome === 'stale' ? 'stale' : answerOf(outcome!, placed, context);
}

/** What has a place is not appended again, also when the outbox has forgotten it. */
const placeOf = (row: MessageRow, { emitter }: Context) => row.cursor ?? emitter.placeOf(row.message_id);

/** The echo, which is the answer too; or only the answer, in its place in the order. */
function echoOf(row: MessageRow | 'stale', origin: Request['origin'], context: Context): Effects {
  if (row === 'stale') return {};
  const echo = messageOut(row, origin);
  const cursor = placeOf(row, context);
  return cursor === undefined ? { frames: [echo] } : { answer: { to: origin, cursor, body: echo.body } };
}

const answerOf = (row: MessageRow, placed: Placed | undefined, context: Context): Answer =>
  placed === undefined
    ? { kind: 'placed', cursor: placeOf(row, context) ?? 0, fresh: false, body: messageOut(row).body }
    : { kind: 'placed', ...placed };

/** A refusal of what was stored before is none: then that stands. */
async function planOf(request: Request, key: string, context: Context): Promise<Plan | { readonly stored: MessageRow }> {
  try {
    return await checkSend(request, context);
  } catch (error) {
    const stored = await context.store.messages.get(request.tenant_id, messageIdOf(request.tenant_id, key));
    if (stored === undefined || isStale(stored, request, context)) throw error;
    return { stored };
  }
}

function draftOf(request: Request, key: string, plan: Plan, { clock }: Context): { message: MessageRow; turn?: NewTurn } {
  const { tenant_id, device_id, connection_id, frame } = request;
  const message_id = messageIdOf(tenant_id, key);
  const message = messageRow(tenant_id, plan.lane, message_id, {
    role: 'user',
    text: plan.text,
    reply_to: plan.reply_to,
    ts: clock.now(),
    client_ref: frame.payload.client_ref ?? null,
    device_id,
  });
  if (plan.kind === 'stop') return { message };
  return { message, turn: newTurn(message, { kind: plan.kind, created_at: clock.now(), connection_id }) };
}

/** What the store made of it. @throws RequestError */
function kept(stored: StoredMessage, request: Request, context: Context): MessageRow | 'stale' {
  if (stored === 'no_lane') throw notFound('chat_id');
  if (stored === 'deleted') throw notFound('message_id');
  const { row, inserted } = stored;
  if (inserted) context.turns.remember(row);
  else if (isStale(row, request, context)) return 'stale';
  if (row.text !== (request.frame.payload.text ?? '')) throw unsupported('client_ref: it stands for another text');
  return row;
}

const isStale = (row: MessageRow, { frame }: Request, { clock, config }: Context): boolean =>
  frame.payload.client_ref !== undefined && row.ts <= clock.now() - config.client_ref_ms;

/** The same send once more: the first result. Its echo stands in the outbox, or is appended now. */
async function again(request: Request, row: MessageRow, context: Context): Promise<Answer> {
  const { tenant_id, deadline, origin } = request;
  const same = kept({ row, inserted: false }, request, context);
  if (same === 'stale') throw unsupported('client_ref: it stands for another message');
  const placing = context.emitter.emit({
    kind: 'change',
    tenant_id,
    deadline,
    run: async () => echoOf(same, origin, context),
  });
  request.entered();
  return answerOf(same, (await placing)[0], context);
}
