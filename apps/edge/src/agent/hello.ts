import type { AgentHelloAnswer } from '@iris/bus';
import {
  type AgentUpFrameOf,
  type CloseReason,
  closeCodes,
  decodeAgent,
  type ErrorCode,
  limits,
  type RequestId,
  splice,
  type TenantId,
  tenantOfToken,
} from '@iris/protocol';
import { enroll } from '../confirm.js';
import type { EdgeContext } from '../context.js';
import { wasRevoked } from '../good-tokens.js';
import { knock, knocked, unanswered } from '../knock.js';
import { withLinks } from '../media-link.js';
import { errorFrame, textOf } from '../outbound.js';
import type { AgentLink, Greeting } from './link.js';
import { texts } from './texts.js';

export function refuseAgent(
  edge: EdgeContext,
  link: AgentLink,
  id: RequestId | undefined,
  code: ErrorCode,
  message: string,
  retry_after_ms?: number,
): void {
  edge.meters.errors.add(1, { code });
  link.socket.send(splice(errorFrame(code, message, retry_after_ms), id === undefined ? {} : { id }));
}

export function closeAgent(edge: EdgeContext, link: AgentLink, reason: CloseReason, text: string = reason): void {
  edge.meters.closed.add(1, { code: closeCodes[reason] });
  link.socket.close(closeCodes[reason], text);
}

/** A frame of an agent that has not been told `hello.ack`. */
export function greetAgent(edge: EdgeContext, link: AgentLink, state: Greeting, data: Uint8Array, binary: boolean) {
  if (state.hello !== undefined) return waitBehind(edge, link, state, data, binary);
  if (data.length > limits.hello_bytes * 4) return closeAgent(edge, link, 'too_big');
  const text = binary ? undefined : textOf(data);
  if (!binary && text === undefined) return closeAgent(edge, link, 'not_utf8');
  const decoded = text === undefined ? undefined : decodeAgent(text);
  if (decoded?.kind === 'frame' && decoded.frame.type === 'hello')
    return hello(edge, link, state, decoded.frame as AgentUpFrameOf<'hello'>, decoded.text);
  if (decoded?.kind === 'version' || (decoded?.kind === 'invalid' && decoded.type === 'hello')) {
    refuseAgent(edge, link, decoded.id, 'unsupported', decoded.message);
    return closeAgent(edge, link, 'protocol');
  }
  const id = decoded?.kind === 'frame' ? decoded.frame.id : decoded?.id;
  refuseAgent(edge, link, id, 'auth', 'hello first');
  closeAgent(edge, link, 'auth');
}

function hello(edge: EdgeContext, link: AgentLink, state: Greeting, frame: AgentUpFrameOf<'hello'>, text: string) {
  const token = state.token ?? frame.payload.token ?? '';
  state.hello = { id: frame.id, token };
  const whole = JSON.parse(text) as { payload: object };
  // The session takes the token from the frame, wherever the agent put it.
  const body = new TextEncoder().encode(JSON.stringify({ ...whole, payload: { ...whole.payload, token } }));
  const refuse = (message: string, wait_ms: number, reason: 'rate' | 'full') => {
    refuseAgent(edge, link, frame.id, 'rate_limited', message, wait_ms);
    closeAgent(edge, link, reason);
  };
  const go = () => {
    link.tenant_id = tenantOfToken(token) ?? ('-' as TenantId);
    edge.forward.ask(link, { type: 'hello', id: frame.id, body, deadline_ms: 10_000, address: link.address });
  };
  const left = () => unanswered(edge, link);
  const noRoom = (wait_ms: number) => {
    left();
    refuse('too many say hello at once', wait_ms, 'full');
  };
  const enter = () => edge.admission.agent.enter({ connection: link, go, left, refuse: noRoom }, edge.clock.now());
  knock(edge, link, token, enter, (wait_ms) => refuse('too many failed hellos from this address', wait_ms, 'rate'));
}

function waitBehind(edge: EdgeContext, link: AgentLink, state: Greeting, data: Uint8Array, binary: boolean) {
  state.waiting_bytes += data.length;
  if (binary || state.waiting.length >= edge.config.waiting_frames || state.waiting_bytes > edge.config.waiting_bytes * 4)
    return closeAgent(edge, link, 'rate');
  state.waiting.push(data.slice());
}

/** What the session says to an agent's hello. `receive` is given what the agent sent behind it. */
export function agentHelloAnswered(edge: EdgeContext, link: AgentLink, n: number, body: Uint8Array, receive: (data: Uint8Array) => void) {
  const to = link.in_flight?.get(n)?.to;
  if (to === undefined) return;
  const answer = JSON.parse(Buffer.from(body).toString()) as AgentHelloAnswer;
  if (answer.refused === undefined) {
    // Before the request is settled: a link that is gone meanwhile says so, and then says whose it was.
    link.agent_id = answer.agent_id;
    link.epoch = answer.epoch;
    link.token_id = answer.token_id;
    link.pinned = to;
  }
  const request = edge.forward.settle(link, n);
  if (request !== undefined) knocked(edge, link, answer.refused?.code === 'auth' ? undefined : tokenIn(request.body));
  const { state } = link;
  if (state.kind !== 'greeting' || state.hello === undefined) return;
  const { id } = state.hello;
  if (answer.refused !== undefined) {
    const { code, message, close } = answer.refused;
    refuseAgent(edge, link, id, code as ErrorCode, message);
    edge.meters.closed.add(1, { code: close ?? closeCodes.auth });
    return link.socket.close(close ?? closeCodes.auth, code);
  }
  if (wasRevoked(edge, answer.tenant_id, answer.token_id)) return closeAgent(edge, link, 'revoked');
  if (edge.draining) return closeAgent(edge, link, 'restarting');

  if (edge.greeting.delete(link)) edge.addresses.leave(link.address);
  link.socket.welcome();
  edge.links.add(link);
  enroll(edge, link);
  link.state = {
    kind: 'linked',
    sent_seq: answer.sent_seq,
    acked: 0,
    ack_due: false,
    texts: texts({ clock: edge.clock, config: edge.config, send: (type, update) => edge.forward.update(link, type, update) }),
    malformed: 0,
    malformed_since: 0,
  };
  answer.frames.forEach((frame, i) => {
    const bytes = withLinks(edge, answer.tenant_id, Buffer.from(frame), { token_id: answer.token_id });
    link.socket.send(i === 0 && id !== undefined ? splice(bytes, { id }) : bytes);
  });
  for (const data of state.waiting) receive(data);
}

const tokenIn = (hello: Uint8Array): string => (JSON.parse(Buffer.from(hello).toString()) as { payload: { token: string } }).payload.token;
