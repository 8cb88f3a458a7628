import { pushAnswer as type } from '@iris/bus';
import { type ErrorCode, limits, nestsDeeperThan, tenantOfToken } from '@iris/protocol';
import type { Caller } from './connection.js';
import type { EdgeContext } from './context.js';
import { attempt, tried } from './knock.js';

/** An HTTP answer, as JSON. */
export interface HttpReply {
  readonly status: number;
  readonly body: string;
}

/** One that waits for a session's word. It has no socket; for the forward it is a connection with one request. */
export interface Answering extends Caller {
  settle(frame: Uint8Array): void;
}

/** Bytes of the request: a token and an answer. */
export const answerBytes = 8 * 1024;
const deadline_ms = 10_000;
const utf8 = new TextEncoder();
const statuses: Readonly<Record<ErrorCode, number>> = {
  auth: 401,
  not_found: 404,
  rate_limited: 429,
  media_too_large: 413,
  unsupported: 400,
  internal: 503,
};

/**
 * `POST /push/answer {token, value}`: answers a picker from its notification. `{ok:true}`, or `{error: {code, message}}` with one of the six codes.
 * Wrong tokens of an address count as its wrong hellos do, on all edges together.
 */
export function answerPush(edge: EdgeContext, body: string, address: string): Promise<HttpReply> {
  const asked = parsed(body);
  if (typeof asked === 'string') return Promise.resolve(refusal('unsupported', asked));
  const tenant_id = tenantOfToken(asked.token);
  if (tenant_id === undefined) return Promise.resolve(refusal('auth', 'token: not accepted'));
  if (edge.draining) return Promise.resolve(refusal('internal', 'try again'));
  return new Promise((resolve) => {
    const done = (reply: HttpReply) => {
      tried(edge, caller, reply.status !== statuses.auth);
      edge.answering.delete(caller.connection_id);
      edge.forward.leave(caller);
      resolve(reply);
    };
    const caller: Answering = {
      connection_id: edge.newConnectionId(),
      peer: 'device',
      tenant_id,
      device_id: undefined,
      agent_id: undefined,
      epoch: undefined,
      pinned: undefined,
      asked: 0,
      in_flight: undefined,
      in_flight_bytes: 0,
      unsent: 0,
      instance: undefined,
      leaving: false,
      settle(frame) {
        edge.forward.settle(caller, 1);
        done(replyOf(frame));
      },
    };
    attempt(edge, {
      who: caller,
      address,
      gone: () => false,
      go() {
        edge.answering.set(caller.connection_id, caller);
        edge.forward.ask(caller, { type, id: undefined, body: utf8.encode(JSON.stringify(asked)), deadline_ms });
      },
      refuse() {
        edge.meters.limited.add(1, { what: 'push.answer' });
        resolve(refusal('rate_limited', 'too many answers that were not accepted'));
      },
    });
  });
}

/** Nobody answered in time. */
export function answerOverdue(answering: Answering): void {
  answering.settle(utf8.encode(JSON.stringify({ type: 'error', payload: { code: 'internal', message: 'no answer in time' } })));
}

function parsed(body: string): { token: string; value: string | string[] } | string {
  let given: unknown;
  try {
    given = nestsDeeperThan(body, 4) ? undefined : JSON.parse(body);
  } catch {}
  if (typeof given !== 'object' || given === null) return 'body: must be an object';
  const { token, value } = given as { token?: unknown; value?: unknown };
  if (typeof token !== 'string' || token.length > limits.token_length) return 'token: must be a string';
  const values = Array.isArray(value) ? (value as unknown[]) : [value];
  if (values.length > limits.picker_choices || values.some((one) => typeof one !== 'string')) return 'value: must be a string, or strings';
  return { token, value: value as string | string[] };
}

function replyOf(frame: Uint8Array): HttpReply {
  const { type: said, payload } = JSON.parse(new TextDecoder().decode(frame)) as {
    type: string;
    payload: { code: ErrorCode; message: string };
  };
  return said === 'error' ? refusal(payload.code, payload.message) : { status: 200, body: '{"ok":true}' };
}

const refusal = (code: ErrorCode, message: string): HttpReply => ({
  status: statuses[code],
  body: JSON.stringify({ error: { code, message } }),
});
