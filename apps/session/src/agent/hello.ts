import type { AgentHelloAnswer } from '@iris/bus';
import { type AgentId, type AgentUpFrameOf, closeCodes, encode, type InstallId, limits, RequestError, type TenantId } from '@iris/protocol';
import type { AgentFrameRow, AgentRow } from '@iris/store';
import type { Answer, Context } from '../context.js';
import { type Effects, mergeEffects, type Origin } from '../emission.js';
import { admit, refusedToken } from '../handlers/hello.js';
import { channelEntry } from '../rules/frames.js';
import { closeTurn } from './close-turn.js';
import { linkText } from './link.js';
import type { Room } from './room.js';
import { becomes } from './turn-frames.js';
import { offerAgain } from './turns.js';

export interface AgentHelloRequest {
  /** What the edge routed by; the token decides. */
  readonly tenant_id: TenantId;
  readonly origin: Origin;
  readonly frame: AgentUpFrameOf<'hello'>;
  entered(): void;
}

const utf8 = new TextEncoder();
const text = new TextDecoder();

/**
 * An agent's link says hello: the next epoch, from which on no older link may act. Turns that its process took along into its grave are sent again
 * or ended; what was not acked goes to it again, in order.
 */
export async function agentHello(request: AgentHelloRequest, context: Context): Promise<Answer> {
  const { origin, frame } = request;
  const { emitter, directory, turns, clock, config } = context;
  try {
    const { tenant_id, token } = await admit(frame.payload.token ?? '', 'agent', context);
    if (token.agent_id === null) throw refusedToken();
    const agent_id = token.agent_id;
    let body: Uint8Array<ArrayBuffer> = new Uint8Array();
    const placing = emitter.emit({
      kind: 'change',
      tenant_id,
      // Nothing for this agent may be on its way while its link changes.
      place: 'alone',
      async run() {
        const attached = await attach(tenant_id, agent_id, request, context);
        body = utf8.encode(JSON.stringify({ ...attached.answer, token_id: token.token_id }));
        return { ...attached.effects, answer: { to: origin, body } };
      },
    });
    request.entered();
    await placing;
    directory.changed(tenant_id, 'agents');
    turns.advanceAll(tenant_id);
    clock.after(config.resume_ms, () => turns.recheck(tenant_id, agent_id));
    return { kind: 'said', body };
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    return { kind: 'body', body: refusal(request.tenant_id, error) };
  }
}

async function attach(
  tenant_id: TenantId,
  agent_id: AgentId,
  { origin, frame }: AgentHelloRequest,
  context: Context,
): Promise<{ effects: Effects; answer: AgentHelloAnswer }> {
  const { store, clock, links, rooms, directory, config } = context;
  const { payload } = frame;
  await links.settled(tenant_id, agent_id);
  const standing = await store.agents.get(tenant_id, agent_id);
  // Asked again, by the edge: the epoch that it got stands.
  const repeated = standing?.link_connection_id === origin.connection_id;
  const attached = repeated
    ? { row: standing, previous: standing }
    : await store.agents.attach(tenant_id, {
        agent_id,
        install_id: payload.install_id as InstallId,
        boot_id: payload.boot_id,
        edge_id: origin.edge_id,
        connection_id: origin.connection_id,
        caps: { ...payload.caps },
        at: clock.now(),
      });
  if (attached === undefined) throw refusedToken();
  const { row, previous } = attached;
  const sameInstall = repeated || previous.install_id === row.install_id;
  const waiting = await store.agentFrames.after(tenant_id, agent_id, 0);
  const acked = (waiting[0]?.seq ?? row.out_seq + 1) - 1;
  // Asked again, the link may have been used meanwhile: what it has acked since is newer than what its hello said.
  const said = repeated ? Math.max(payload.last_seq, acked) : payload.last_seq;
  const has = sameInstall ? Math.min(said, row.out_seq) : 0;
  // It has forgotten what it had acked, and so also what it was to do.
  const forgot = sameInstall && has < acked;
  await store.agentFrames.ack(tenant_id, agent_id, has);

  // Another instance may have served the tenant since this one looked: a link begins with the truth.
  rooms.forget(tenant_id);
  const room = await rooms.of(tenant_id);
  const kept = waiting.filter(({ seq }) => seq > has);
  const resumed = await resume({ room, row, open_turns: new Set(payload.open_turns ?? []), unacked: kept, forgot }, context);
  const unacked = await store.agentFrames.after(tenant_id, agent_id, has);
  const sent_seq = unacked.at(-1)?.seq ?? has;
  const ack = {
    type: 'hello.ack' as const,
    payload: {
      link_id: origin.connection_id,
      epoch: row.epoch,
      last_seq: row.in_seq,
      heartbeat_ms: config.heartbeat_ms,
      limits: { text_bytes: limits.text_bytes, frame_bytes: limits.agent_frame_bytes },
      turns: [...room.turns.values()]
        .filter((turn) => turn.agent_id === agent_id && !turn.ended)
        .map((turn) => ({
          turn_id: turn.turn_id,
          chat_id: turn.chat_id,
          thread_id: turn.thread_id,
          state: turn.accepted ? ('running' as const) : ('sent' as const),
          messages: turn.messages.map(({ own_id, message_id }) => ({
            message_id: own_id,
            length: room.texts.get(message_id)?.text.length ?? 0,
          })),
        })),
      channels: (await directory.channels(tenant_id)).rows.map(channelEntry),
    },
  };
  // Another process may have other commands; one that says them by itself is asked for nothing new.
  const asks = repeated || previous.boot_id !== row.boot_id ? [linkText({ type: 'commands.catalog', payload: {} })] : [];
  const effects = mergeEffects([
    resumed,
    {
      close: replacedLink(previous, origin),
      know: () => void links.attach(row, sent_seq, has),
    },
  ]);
  return {
    effects,
    answer: {
      tenant_id,
      token_id: '',
      agent_id,
      epoch: row.epoch,
      frames: [text.decode(encode(ack)), ...unacked.map(({ seq, frame: down }) => linkText(down, seq)), ...asks],
      sent_seq,
    },
  };
}

const replacedLink = (previous: AgentRow, { connection_id }: Origin): NonNullable<Effects['close']> =>
  previous.link_edge_id === null || previous.link_connection_id === null || previous.link_connection_id === connection_id
    ? []
    : [
        {
          edge_id: previous.link_edge_id,
          connection_id: previous.link_connection_id,
          code: closeCodes.replaced,
          reason: 'a newer link of this agent took over',
        },
      ];

/**
 * Turns that the agent holds, as its new link finds them. Those it goes on with are its new process's from now on. A `turn.start` that the old
 * process never had goes to the new one as a further attempt. Of the others this link may still hold frames that it has kept: they
 * are looked at when it had time to say them, see {@link Turns.recheck}.
 */
async function resume(
  {
    room,
    row,
    open_turns,
    unacked,
    forgot,
  }: { room: Room; row: AgentRow; open_turns: ReadonlySet<string>; unacked: readonly AgentFrameRow[]; forgot: boolean },
  { store, clock, turns }: Context,
): Promise<Effects> {
  const offered = new Set(unacked.filter(({ frame }) => frame.type === 'turn.start').map(({ frame }) => frame.turn_id));
  const effects: Effects[] = [];
  for (const state of room.turns.values()) {
    if (state.agent_id !== row.agent_id || state.ended) continue;
    const anew = state.boot_id !== row.boot_id;
    const waits = offered.has(state.turn_id);
    if (open_turns.has(state.turn_id)) {
      if (!anew) continue;
    } else {
      if (!((forgot && !waits) || (anew && waits))) continue;
      const rows = await offerAgain(state, row, { store, turns });
      if (rows === undefined) continue;
      if (rows === 'deleted') {
        effects.push(await closeTurn({ store, clock }, row.tenant_id, room, state, 'cancelled', { own: false }));
        continue;
      }
    }
    effects.push(becomes(room, { ...state, boot_id: row.boot_id }));
  }
  return mergeEffects(effects);
}

function refusal(tenant_id: TenantId, { code, message }: RequestError): Uint8Array<ArrayBuffer> {
  const answer: AgentHelloAnswer = {
    tenant_id,
    token_id: '',
    agent_id: '' as AgentId,
    epoch: 0,
    refused: { code, message, close: closeCodes.auth },
    frames: [],
    sent_seq: 0,
  };
  return utf8.encode(JSON.stringify(answer));
}
