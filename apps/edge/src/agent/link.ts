import type { AgentId, ConnectionId, SessionId, TenantId } from '@iris/protocol';
import type { Caller, Handlers } from '../connection.js';
import type { InFlight } from '../forward.js';
import type { Socket, SocketEvents } from '../socket.js';
import type { Texts } from './texts.js';

/** What an agent's link is doing. */
export type LinkState = Greeting | Linked | { readonly kind: 'closed' };

/** Before `hello.ack`. */
export interface Greeting {
  readonly kind: 'greeting';
  readonly since: number;
  /** From the upgrade's `Authorization` header. */
  readonly token: string | undefined;
  hello?: { readonly id: number | string | undefined; readonly token: string };
  readonly waiting: Uint8Array[];
  waiting_bytes: number;
}

export interface Linked {
  readonly kind: 'linked';
  /** The highest durable `seq` that was sent to the agent. */
  sent_seq: number;
  /** The highest `ack` of the agent that was passed on. */
  acked: number;
  /** An `ack` that stands alone waits for the end of the tick: only the last one counts. */
  ack_due: boolean;
  readonly texts: Texts;
  malformed: number;
  malformed_since: number;
}

/** An agent's socket. A class for the same reason as `DeviceConnection`. */
export class AgentLink implements Caller, SocketEvents {
  readonly peer = 'agent';
  readonly device_id = undefined;
  tenant_id = '' as TenantId;
  agent_id: AgentId | undefined = undefined;
  epoch: number | undefined = undefined;
  token_id = '';
  state: LinkState;
  heard: number;
  asked = 0;
  in_flight: Map<number, InFlight> | undefined = undefined;
  in_flight_bytes = 0;
  unsent = 0;
  instance: SessionId | undefined = undefined;
  /** The instance that has this link in its memory; when it is no longer the tenant's, the link comes back. */
  pinned: SessionId | undefined = undefined;
  leaving = false;

  constructor(
    readonly connection_id: ConnectionId,
    readonly socket: Socket,
    readonly address: string,
    token: string | undefined,
    tick: number,
    private readonly handlers: Handlers<AgentLink>,
  ) {
    this.heard = tick;
    this.state = { kind: 'greeting', since: tick, token, waiting: [], waiting_bytes: 0 };
  }
  message(data: Uint8Array, binary: boolean): void {
    this.handlers.message(this, data, binary);
  }
  pong(data: Uint8Array): void {
    this.handlers.pong(this, data);
  }
  drained(): void {
    this.handlers.drained(this);
  }
  closed(): void {
    this.handlers.closed(this);
  }
}
