import { networkOf } from '@iris/runtime';
import type { AgentLink } from './agent/link.js';
import type { DeviceConnection } from './connection.js';
import type { EdgeContext } from './context.js';
import { digest, remember } from './good-tokens.js';

/** Milliseconds that a hello waits for others of its address to end, on all edges together, and how often it asks meanwhile. */
const patience_ms = 1_000;
const again_ms = 250;

/** Something that is tried at an address: whom the edge knows by it, and what is to be done. One of the last two is called once, unless it is gone. */
interface Trial {
  readonly who: object;
  readonly address: string;
  /** Nobody waits for it any more. */
  gone(): boolean;
  go(): void;
  refuse(wait_ms: number): void;
}

/**
 * Try a hello, unless its address has failed too often; `refuse` is told the milliseconds to wait. Either is called once, unless the socket goes.
 */
export function knock(
  edge: EdgeContext,
  connection: DeviceConnection | AgentLink,
  token: string,
  go: () => void,
  refuse: (wait_ms: number) => void,
): void {
  // Who knows a token that was good a moment ago does not guess; others at the address may.
  if (edge.good_tokens.has(digest(token))) return void go();
  const { state, address } = connection;
  attempt(edge, {
    who: connection,
    address,
    gone: () => connection.state !== state,
    go,
    refuse(wait_ms) {
      edge.meters.limited.add(1, { what: 'hello' });
      refuse(wait_ms);
    },
  });
}

/** Its end is owed: {@link tried}. This edge's own bucket is asked first, and holds alone while the one of all edges cannot be reached. */
export function attempt(edge: EdgeContext, { who, address, gone, go, refuse }: Trial): void {
  edge.addresses.attempt(address, edge.clock.now(), (wait_ms) => {
    if (gone()) return false;
    if (wait_ms > 0) {
      refuse(wait_ms);
      return false;
    }
    const trying = { address, everywhere: false };
    edge.trying.set(who, trying);
    const until = edge.clock.now() + patience_ms;
    /** It left before it was tried. */
    const left = (): boolean => {
      if (!gone()) return false;
      tried(edge, who, true);
      return true;
    };
    const ask = () => {
      if (left()) return;
      share(edge, address, 1).then(
        (shared_ms) => {
          if (shared_ms === 0) trying.everywhere = true;
          if (left()) return;
          if (shared_ms === 0) return go();
          // What others of its address have taken may come back, if they are good.
          if (edge.clock.now() + again_ms <= until) return void edge.clock.after(again_ms, ask);
          // It was not tried, so it has not failed: what this edge's bucket gave for it goes back.
          tried(edge, who, true);
          refuse(shared_ms);
        },
        () => left() || go(),
      );
    };
    ask();
    return true;
  });
}

const share = ({ outbox, config }: EdgeContext, address: string, count: 1 | -1): Promise<number> =>
  outbox.attempt(networkOf(address), { per_minute: config.hello_failures_per_minute, burst: config.hello_failures_burst }, count);
const giveBack = (edge: EdgeContext, address: string): void =>
  void share(edge, address, -1).catch((error: unknown) => edge.log.debug('edge.attempt_not_given_back', { error }));

/** How what was tried has ended. */
export function tried(edge: EdgeContext, who: object, good: boolean): void {
  const trying = edge.trying.get(who);
  if (trying === undefined) return;
  edge.trying.delete(who);
  // First, so that whoever may try now because of it finds it there.
  if (good && trying.everywhere) giveBack(edge, trying.address);
  edge.addresses.tried(trying.address, edge.clock.now(), good);
}

/** How it ended; `token` when it was good. */
export function knocked(edge: EdgeContext, connection: DeviceConnection | AgentLink, token: string | undefined): void {
  if (token !== undefined) remember(edge.good_tokens, digest(token));
  tried(edge, connection, token !== undefined);
}

/** It has no end: nobody answered. That is not the peer's fault. */
export function unanswered(edge: EdgeContext, connection: DeviceConnection | AgentLink): void {
  tried(edge, connection, true);
}
