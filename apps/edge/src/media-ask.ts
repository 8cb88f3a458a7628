import type { MediaAsk, MediaAsks } from '@iris/bus';
import { type ConnectionId, RequestError, type TenantId } from '@iris/protocol';
import type { Caller } from './connection.js';
import type { EdgeContext } from './context.js';
import type { InFlight } from './forward.js';

const utf8 = new TextEncoder();
const text = new TextDecoder();

/** A question of the edge's own about a file. It outlives the connection that it is about. */
export interface Asker {
  readonly caller: Caller;
  /** Undefined: nobody answered in time. */
  answered(body: Uint8Array | undefined): void;
}

/**
 * Ask the session about a file, as often as it takes, at most `deadline_ms`.
 * @throws RequestError what the session refused it with; `internal` when there was no answer
 */
export function askAboutMedia<A extends MediaAsk>(
  edge: EdgeContext,
  tenant_id: TenantId,
  type: A,
  ask: MediaAsks[A]['ask'],
  deadline_ms = 10_000,
): Promise<MediaAsks[A]['answer']> {
  const connection_id = edge.newConnectionId();
  const caller: Caller = { ...idle, connection_id, tenant_id };
  return new Promise((resolve, reject) => {
    edge.askers.set(connection_id, {
      caller,
      answered(body) {
        edge.askers.delete(connection_id);
        edge.forward.leave(caller);
        if (body === undefined) return reject(new RequestError('internal', 'no answer in time'));
        const said = JSON.parse(text.decode(body)) as MediaAsks[A]['answer'] & {
          type?: string;
          payload?: { code: RequestError['code']; message: string; retry_after_ms?: number };
        };
        if (said.type !== 'error' || said.payload === undefined) return resolve(said);
        const { code, message, retry_after_ms } = said.payload;
        reject(new RequestError(code, message, retry_after_ms));
      },
    });
    edge.forward.ask(caller, { type, id: undefined, body: utf8.encode(JSON.stringify(ask)), deadline_ms });
  });
}

export function mediaAnswered(edge: EdgeContext, connection_id: ConnectionId, n: number, body: Uint8Array): void {
  const asker = edge.askers.get(connection_id);
  if (asker !== undefined && edge.forward.settle(asker.caller, n) !== undefined) asker.answered(body);
}

/** @returns whether it was one of these */
export function mediaOverdue(edge: EdgeContext, caller: Caller, { type }: InFlight): boolean {
  const asker = edge.askers.get(caller.connection_id);
  if (asker === undefined) return false;
  edge.log.warn('edge.overdue', { type });
  asker.answered(undefined);
  return true;
}

const idle = {
  peer: 'device',
  device_id: undefined,
  agent_id: undefined,
  epoch: undefined,
  asked: 0,
  in_flight: undefined,
  in_flight_bytes: 0,
  unsent: 0,
  instance: undefined,
  pinned: undefined,
  leaving: false,
} as const;
