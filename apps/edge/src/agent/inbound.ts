import { passedOver } from '@iris/bus';
import { type AgentUpFrame, decodeAgent, encode, limits } from '@iris/protocol';
import type { EdgeContext } from '../context.js';
import { textOf } from '../outbound.js';
import { toTicks } from '../ticks.js';
import { closeAgent, greetAgent, refuseAgent } from './hello.js';
import type { AgentLink, Linked } from './link.js';

/** Until a request of an agent is given up. Durable frames are not: their link is closed, and the next one brings them again. */
const request_ms = 10_000;
const utf8 = new TextEncoder();

/** One message of an agent. */
export function receiveAgent(edge: EdgeContext, link: AgentLink, data: Uint8Array, binary: boolean) {
  link.heard = edge.time.tick;
  const { state } = link;
  if (state.kind === 'greeting') return greetAgent(edge, link, state, data, binary);
  if (state.kind === 'closed') return;
  if (binary) return malformed(edge, link, state, 'binary frames are not spoken here');
  if (data.length > limits.agent_frame_bytes) return closeAgent(edge, link, 'too_big');
  const text = textOf(data);
  if (text === undefined) return closeAgent(edge, link, 'not_utf8');
  const decoded = decodeAgent(text);
  edge.meters.frames_in.add(1, { peer: 'agent', type: decoded.kind === 'frame' ? decoded.frame.type : decoded.kind });
  switch (decoded.kind) {
    case 'malformed':
      return malformed(edge, link, state, decoded.message, decoded.id);
    case 'version':
      return refuseAgent(edge, link, decoded.id, 'unsupported', decoded.message);
    case 'unknown':
      if (decoded.id !== undefined) refuseAgent(edge, link, decoded.id, 'unsupported', decoded.message);
      return passOver(edge, link, decoded.seq, data);
    case 'invalid':
      refuseAgent(edge, link, decoded.id, 'unsupported', decoded.message);
      return passOver(edge, link, decoded.seq, data);
    case 'frame': {
      const body = decoded.text === text ? data.slice() : utf8.encode(decoded.text);
      return act(edge, link, state, decoded.frame, body);
    }
  }
}

function act(edge: EdgeContext, link: AgentLink, state: Linked, frame: AgentUpFrame, body: Uint8Array) {
  const { texts } = state;
  if (frame.ack !== undefined && frame.ack > state.acked && frame.seq === undefined) passAck(edge, link, state, frame.ack);
  switch (frame.type) {
    case 'hello':
      return refuseAgent(edge, link, frame.id, 'unsupported', 'hello was said already');
    case 'ping': {
      const { ts } = frame.payload;
      link.socket.send(encode({ type: 'pong', payload: { ...(ts === undefined ? {} : { ts }), server_ts: edge.clock.now() } }));
      return;
    }
    case 'pong':
      return;
    case 'ack':
      // One that stands alone is passed on already, the newest of the tick.
      if (frame.id === undefined && Object.keys(frame.payload).length === 0) return;
      break;
    case 'message.update':
      return texts.update(frame);
    case 'message.delta':
      return texts.delta(frame);
    case 'reasoning.delta':
      return texts.reasoning(frame);
    case 'tool.progress':
      return texts.put(`p:${frame.turn_id}:${frame.payload.index}`, frame.turn_id, frame.type, body);
    case 'typing':
    case 'typing.stop':
      return texts.put(`t:${frame.turn_id ?? ''}:${frame.chat_id ?? ''}:${frame.thread_id ?? ''}`, frame.turn_id, frame.type, body);
    case 'message.start':
      texts.start(frame);
      break;
    case 'turn.snapshot':
      texts.snapshot(frame);
      break;
  }
  before(state, frame);
  ask(edge, link, frame.type, frame.id, body);
  after(state, frame);
}

/** What waits of the turn goes ahead of a frame that belongs behind it. */
function before({ texts }: Linked, frame: AgentUpFrame): void {
  if (frame.seq === undefined || frame.turn_id === undefined) return;
  const ended = frame.type === 'message.stop' || frame.type === 'message' ? frame.payload.message_id : undefined;
  if (ended !== undefined) texts.stop(frame.turn_id, ended);
  texts.flush(frame.turn_id, ended);
}

function after({ texts }: Linked, frame: AgentUpFrame): void {
  if (frame.type === 'turn.end' && frame.turn_id !== undefined) texts.endTurn(frame.turn_id);
}

function ask(edge: EdgeContext, link: AgentLink, type: string, id: number | string | undefined, body: Uint8Array) {
  // Nothing here may be refused, since nothing durable may be lost: an agent that is ahead of us so far comes back and sends it again.
  if (link.in_flight_bytes > edge.config.agent_in_flight_bytes) return closeAgent(edge, link, 'full', 'too much is unanswered');
  edge.forward.ask(link, { type, id, body, deadline_ms: request_ms });
}

/** It cannot be handled, now or ever; the agent is to forget it all the same. */
function passOver(edge: EdgeContext, link: AgentLink, seq: number | undefined, data: Uint8Array): void {
  if (seq !== undefined && Number.isSafeInteger(seq) && seq >= 0) ask(edge, link, passedOver, undefined, data.slice());
}

function passAck(edge: EdgeContext, link: AgentLink, state: Linked, ack: number): void {
  state.acked = ack;
  if (state.ack_due) return;
  state.ack_due = true;
  edge.clock.soon(() => {
    state.ack_due = false;
    if (link.state === state)
      ask(edge, link, 'ack', undefined, utf8.encode(JSON.stringify({ type: 'ack', ack: state.acked, payload: {} })));
  });
}

function malformed(edge: EdgeContext, link: AgentLink, state: Linked, message: string, id?: number | string): void {
  refuseAgent(edge, link, id, 'unsupported', message);
  if (edge.time.tick - state.malformed_since >= toTicks(60_000)) {
    state.malformed = 0;
    state.malformed_since = edge.time.tick;
  }
  if (++state.malformed >= limits.malformed_per_minute) closeAgent(edge, link, 'protocol');
}
