import { heldEvery_ms, type ToEdge } from '@iris/bus';
import { encode, splice } from '@iris/protocol';
import { measure } from '../answers.js';
import { dismiss } from '../confirm.js';
import type { Caller } from '../connection.js';
import type { EdgeContext } from '../context.js';
import type { InFlight } from '../forward.js';
import { withLinks } from '../media-link.js';
import { toTicks } from '../ticks.js';
import { agentHelloAnswered, closeAgent, refuseAgent } from './hello.js';
import { receiveAgent } from './inbound.js';
import type { AgentLink } from './link.js';

/** The session has answered a request of an agent. */
export function agentAnswered(edge: EdgeContext, link: AgentLink, record: Extract<ToEdge, { kind: 'answer' }>) {
  if (record.n === 1) return agentHelloAnswered(edge, link, 1, record.body, (data) => receiveAgent(edge, link, data, false));
  const request = edge.forward.settle(link, record.n);
  if (request === undefined) return;
  measure(edge, request);
  if (link.state.kind !== 'linked' || record.body.length === 0) return;
  const body = withLinks(edge, link.tenant_id, record.body, { token_id: link.token_id });
  link.socket.send(request.id === undefined ? body : splice(body, { id: request.id }));
}

/** A frame for the agent. A durable one only in its turn: one before it was lost, and will be sent again with all behind it. */
export function agentFrame(edge: EdgeContext, link: AgentLink, { seq, body }: Extract<ToEdge, { kind: 'agent' }>) {
  const { state } = link;
  if (state.kind !== 'linked') return;
  if (seq !== undefined) {
    if (seq !== state.sent_seq + 1) return edge.log.debug('edge.agent_seq', { seq, sent_seq: state.sent_seq });
    state.sent_seq = seq;
  }
  link.socket.send(withLinks(edge, link.tenant_id, body, { token_id: link.token_id }));
  // What it does not read it gets again on its next link.
  if (link.socket.buffered() > edge.config.hard_mark_bytes * 4) link.socket.terminate();
}

/** A link is closed, by whomever. */
export function agentClosed(edge: EdgeContext, link: AgentLink): void {
  const { state } = link;
  if (state.kind === 'closed') return;
  link.state = { kind: 'closed' };
  dismiss(edge, link);
  edge.links.delete(link);
  if (edge.greeting.delete(link)) edge.addresses.leave(link.address);
  if (link.asked === 0) return void edge.connections.delete(link.connection_id);
  if (state.kind === 'linked') {
    state.texts.end();
    // All of it comes again by the next link; only a hello is waited for, to know whose link it was.
    edge.forward.abandon(link);
  }
  edge.forward.leave(link);
}

export function agentOverdue(edge: EdgeContext, link: AgentLink, request: InFlight) {
  if (link.state.kind === 'closed') return;
  if (request.type === 'hello') return closeAgent(edge, link, 'full', 'no session');
  if (request.id !== undefined) return refuseAgent(edge, link, request.id, 'internal', 'no answer in time');
  // Durable frames are never given up: the agent comes back with them.
  closeAgent(edge, link, 'restarting', 'no session');
}

/** Links come back one after the other, not all in one instant. */
const chance = 0.34;

/** Each tick: links whose instance no longer serves their tenant come back; every few seconds it is said which are here. */
export function linksTick(edge: EdgeContext): void {
  const say = edge.time.tick % toTicks(heldEvery_ms) === 0;
  for (const link of edge.links) {
    const owner = edge.forward.owner(link.tenant_id);
    if (owner !== undefined && owner !== link.pinned && edge.random.unit() < chance)
      closeAgent(edge, link, 'restarting', 'its session moved');
    else if (say) edge.forward.held(link);
  }
}

export const displaced = (edge: EdgeContext, caller: Caller): void => {
  if (caller.peer === 'agent') closeAgent(edge, caller as AgentLink, 'restarting', 'its session is gone');
};

export const drainFrame = (deadline_ms: number): Uint8Array => encode({ type: 'drain', payload: { deadline_ms } });
