import { type Bus, ownerOf, type SessionWatch, watchSessions } from '@iris/bus';
import type { AgentId, DeviceId, EdgeId, RequestId, SessionId, TenantId } from '@iris/protocol';
import type { Clock, Counter, Log } from '@iris/runtime';
import { batches } from './batches.js';
import type { EdgeConfig } from './config.js';
import type { Caller } from './connection.js';
import { toTicks } from './ticks.js';

/** A request that has no answer yet. */
export interface InFlight {
  readonly n: number;
  readonly id: RequestId | undefined;
  readonly type: string;
  readonly body: Uint8Array;
  /** With `hello` only. */
  readonly address: string | undefined;
  /** Clock milliseconds, for measuring. */
  readonly begun: number;
  /** Tick at which it is given up. */
  readonly deadline: number;
  /** Tick of the last sending; -1: not sent yet. */
  sent: number;
  /** Where it was sent. */
  to: SessionId | undefined;
}

export interface Ask {
  readonly type: string;
  readonly id: RequestId | undefined;
  /** Kept: not a view into somebody else's buffer. */
  readonly body: Uint8Array;
  readonly deadline_ms: number;
  readonly address?: string;
}

/**
 * Hop one: requests to session instances, asked until they are answered. Every request of a connection carries the next
 * number; they go to one instance in order, and to another only when nothing is under way or the old one is gone.
 */
export interface Forward {
  ask(caller: Caller, request: Ask): void;
  /** An agent's ephemeral frame; sent once. */
  update(caller: Caller, type: string, body: Uint8Array): void;
  /** Say that an agent's link is still here. */
  held(caller: Caller): void;
  /** The caller is closed. Said once nothing of it is in flight; {@link ForwardDeps.left} follows. */
  leave(caller: Caller): void;
  /** Take request `n` as answered; undefined when it was already, or was given up. */
  settle(caller: Caller, n: number): InFlight | undefined;
  /** Drop everything in flight: it will be asked again by other means. */
  abandon(caller: Caller): void;
  /** The instance that a tenant's requests go to now. */
  owner(tenant_id: TenantId): SessionId | undefined;
  /** Whether any session instance is known. */
  readonly served: boolean;
  /** Requests in flight, of all callers. */
  readonly size: number;
  /** Send again what is due, give up what is overdue. */
  tick(): void;
  end(): void;
}

export interface ForwardDeps {
  readonly bus: Bus;
  readonly clock: Clock;
  readonly log: Log;
  readonly edge_id: EdgeId;
  readonly time: { readonly tick: number };
  readonly config: Pick<EdgeConfig, 'accept_ms' | 'resend_ms'>;
  readonly resends: Counter;
  /** A request had no answer by its deadline; it is no longer in flight. */
  overdue(caller: Caller, request: InFlight): unknown;
  /** The one instance that a caller may ask is gone. */
  displaced(caller: Caller): void;
  /** A closed caller has nothing in flight any more. */
  left(caller: Caller): void;
}

/** An instance that said goodbye, or fell silent, is given this long to answer what it took just before. */
const goodbye_ms = 1_000;

export function forward(deps: ForwardDeps): Forward {
  const { bus, clock, log, edge_id, time, config, resends } = deps;
  const watch: SessionWatch = watchSessions({ bus, clock });
  const resendTicks = toTicks(config.resend_ms);
  const goodbyeTicks = toTicks(goodbye_ms);
  const active = new Set<Caller>();
  const owners = new Map<TenantId, SessionId>();
  let size = 0;

  const owner = (tenant_id: TenantId): SessionId | undefined => {
    const known = owners.get(tenant_id);
    if (known !== undefined) return known;
    const found = ownerOf(tenant_id, watch.live);
    if (found !== undefined) owners.set(tenant_id, found);
    return found;
  };

  /** Nobody serves its subject: everything it had is asked elsewhere at once. */
  const gone = (session_id: SessionId) => {
    watch.suspect(session_id);
    for (const caller of active) if (caller.instance === session_id) move(caller, 'no_responders');
  };
  const put = batches({ bus, clock, log, accept_ms: config.accept_ms, gone });
  const stopWatching = watch.onChange((live) => {
    owners.clear();
    if (live.size > 0) for (const caller of active) place(caller);
  });

  const lowest = (caller: Caller): number => {
    for (const n of caller.in_flight!.keys()) return n;
    return caller.asked + 1;
  };
  const send = (caller: Caller, request: InFlight, session_id: SessionId) => {
    if (request.sent < 0) caller.unsent--;
    request.sent = time.tick;
    request.to = session_id;
    put(session_id, {
      kind: 'request',
      tenant_id: caller.tenant_id,
      edge_id,
      connection_id: caller.connection_id,
      n: request.n,
      base: lowest(caller),
      peer: caller.peer,
      ...who(caller),
      type: request.type,
      ...(request.address === undefined ? {} : { address: request.address }),
      body: request.body,
    });
  };
  /** Send what waits, as far as it may go now. */
  /** A hello of someone who has left must not be asked again: late, it would take the device or the agent from where it is now. */
  const inVain = (caller: Caller, request: InFlight) => caller.leaving && request.type === 'hello';
  const place = (caller: Caller) => {
    if (caller.unsent === 0) return;
    const best = caller.pinned ?? owner(caller.tenant_id);
    if (caller.in_flight!.size === caller.unsent) caller.instance = best;
    // A change of instance waits for the answers that are under way: what they do must come first.
    if (best === undefined || caller.instance !== best) return;
    for (const request of caller.in_flight!.values()) if (request.sent < 0) send(caller, request, best);
  };
  const move = (caller: Caller, why: string) => {
    if (caller.pinned !== undefined) return deps.displaced(caller);
    let again = 0;
    for (const request of caller.in_flight!.values()) {
      if (request.sent < 0 || inVain(caller, request)) continue;
      request.sent = -1;
      caller.unsent++;
      again++;
    }
    resends.add(again, { why });
    place(caller);
  };
  const remove = (caller: Caller, request: InFlight) => {
    size--;
    caller.in_flight!.delete(request.n);
    caller.in_flight_bytes -= request.body.length;
    if (request.sent < 0) caller.unsent--;
  };
  const emptied = (caller: Caller) => {
    if (caller.in_flight!.size > 0) return place(caller);
    active.delete(caller);
    if (caller.leaving) sayGone(caller);
    else caller.instance = undefined;
  };
  const sayGone = (caller: Caller) => {
    const had = caller.pinned ?? caller.instance;
    const session_id = had !== undefined && watch.live.has(had) ? had : owner(caller.tenant_id);
    if (session_id !== undefined)
      put(session_id, {
        kind: 'gone',
        tenant_id: caller.tenant_id,
        edge_id,
        connection_id: caller.connection_id,
        peer: caller.peer,
        ...who(caller),
        body: nothing,
      });
    deps.left(caller);
  };

  return {
    ask(caller, { type, id, body, deadline_ms, address }) {
      const request: InFlight = {
        n: ++caller.asked,
        id,
        type,
        body,
        address,
        begun: clock.now(),
        deadline: time.tick + toTicks(deadline_ms),
        sent: -1,
        to: undefined,
      };
      if (caller.in_flight === undefined) caller.in_flight = new Map();
      caller.in_flight.set(request.n, request);
      caller.in_flight_bytes += body.length;
      caller.unsent++;
      size++;
      active.add(caller);
      place(caller);
    },
    update(caller, type, body) {
      const session_id = caller.pinned ?? owner(caller.tenant_id);
      if (session_id === undefined) return;
      caller.updated_at = Math.max(clock.now(), (caller.updated_at ?? 0) + 1);
      put(session_id, {
        kind: 'update',
        tenant_id: caller.tenant_id,
        edge_id,
        connection_id: caller.connection_id,
        after_n: caller.asked,
        order: caller.updated_at,
        agent_id: caller.agent_id!,
        epoch: caller.epoch!,
        type,
        body,
      });
    },
    held(caller) {
      const session_id = caller.pinned ?? owner(caller.tenant_id);
      if (session_id === undefined) return;
      const { tenant_id, connection_id } = caller;
      put(session_id, { kind: 'held', tenant_id, edge_id, connection_id, agent_id: caller.agent_id!, epoch: caller.epoch!, body: nothing });
    },
    leave(caller) {
      if (caller.leaving) return;
      caller.leaving = true;
      for (const request of [...(caller.in_flight?.values() ?? [])])
        if (request.sent < 0 && inVain(caller, request)) remove(caller, request);
      if ((caller.in_flight?.size ?? 0) > 0) return;
      active.delete(caller);
      sayGone(caller);
    },
    settle(caller, n) {
      const request = caller.in_flight?.get(n);
      if (request === undefined) return undefined;
      remove(caller, request);
      emptied(caller);
      return request;
    },
    abandon(caller) {
      if (caller.in_flight === undefined) return;
      for (const request of [...caller.in_flight.values()]) remove(caller, request);
      active.delete(caller);
      // Whoever leaves says so to the instance that had them.
    },
    owner,
    get served() {
      return watch.live.size > 0;
    },
    get size() {
      return size;
    },
    tick() {
      for (const caller of active) {
        const lost = caller.instance !== undefined && !watch.live.has(caller.instance);
        let oldest = Number.POSITIVE_INFINITY;
        let overdue: InFlight[] | undefined;
        for (const request of caller.in_flight!.values()) {
          if (time.tick >= request.deadline) {
            overdue ??= [];
            overdue.push(request);
          } else if (request.sent >= 0) oldest = Math.min(oldest, request.sent);
        }
        for (const request of overdue ?? []) {
          remove(caller, request);
          deps.overdue(caller, request);
        }
        if (overdue) emptied(caller);
        if (caller.in_flight!.size === 0) continue;
        if (lost && time.tick - oldest >= goodbyeTicks) move(caller, 'instance_gone');
        else if (time.tick - oldest >= resendTicks) {
          let again = 0;
          for (const request of caller.in_flight!.values())
            if (request.sent >= 0 && time.tick - request.sent >= resendTicks && !inVain(caller, request)) {
              send(caller, request, caller.instance!);
              again++;
            }
          resends.add(again, { why: 'no_answer' });
        }
      }
    },
    end() {
      stopWatching();
      watch.end();
    },
  };
}

const nothing = new Uint8Array();
const who = (caller: Caller): { device_id?: DeviceId; agent_id?: AgentId; epoch?: number } => ({
  ...(caller.device_id === undefined ? {} : { device_id: caller.device_id }),
  ...(caller.agent_id === undefined ? {} : { agent_id: caller.agent_id }),
  ...(caller.epoch === undefined ? {} : { epoch: caller.epoch }),
});
