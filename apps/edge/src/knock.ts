import type { AgentLink } from './agent/link.js';
import type { DeviceConnection } from './connection.js';
import type { EdgeContext } from './context.js';
import { digest, remember } from './good-tokens.js';

/** Try a hello, unless its address has failed too often; `refuse` is told the milliseconds to wait. Either is called once, unless the socket goes. */
export function knock(
  edge: EdgeContext,
  connection: DeviceConnection | AgentLink,
  token: string,
  go: () => void,
  refuse: (wait_ms: number) => void,
): void {
  // Who knows a token that was good a moment ago does not guess; others at the address may.
  if (edge.good_tokens.has(digest(token))) return void go();
  const { state } = connection;
  edge.addresses.attempt(connection.address, edge.clock.now(), (wait_ms) => {
    if (connection.state !== state) return false;
    if (wait_ms > 0) {
      edge.meters.limited.add(1, { what: 'hello' });
      refuse(wait_ms);
      return false;
    }
    edge.trying.add(connection);
    go();
    return true;
  });
}

/** How it ended; `token` when it was good. */
export function knocked(edge: EdgeContext, connection: DeviceConnection | AgentLink, token: string | undefined): void {
  if (token !== undefined) remember(edge.good_tokens, digest(token));
  if (edge.trying.delete(connection)) edge.addresses.tried(connection.address, edge.clock.now(), token !== undefined);
}

/** It has no end: nobody answered. That is not the peer's fault. */
export function unanswered(edge: EdgeContext, connection: DeviceConnection | AgentLink): void {
  if (edge.trying.delete(connection)) edge.addresses.tried(connection.address, edge.clock.now(), true);
}
