import type { TenantId } from '@iris/protocol';
import { type Clock, systemClock } from '@iris/runtime';
import * as rules from './memory-tenant.js';
import { lease_ms as defaultLease_ms, type Outbox, OutboxUnavailable } from './outbox.js';

/** A call on its way in, or its answer on its way out. */
export interface OutboxStep {
  readonly operation: string;
  readonly step: 'call' | 'answer';
  run(): void;
  /** Let it be lost instead: the caller gets {@link OutboxUnavailable}. Lost as an answer, the call has had its effect. */
  fail(): void;
}

export interface MemoryOutboxOptions {
  readonly clock?: Clock;
  readonly lease_ms?: number;
  /** Decides when each step happens; by default each in a microtask of its own. Steps of one caller must keep their order. */
  readonly deliver?: (step: OutboxStep) => void;
}

/** The outbox of one process or, through {@link connect}, of several. */
export interface MemoryOutbox extends Outbox {
  /** Another handle on the same data, with listeners of its own; closing it leaves the others open. */
  connect(): Outbox;
  /** As a server that was restarted and lost everything. */
  forgetEverything(): void;
  /** As a server that was restarted with what it had: no sequence is trusted any more. */
  restart(): void;
  /** As a server that cannot be reached (false) until it can (true). */
  setConnected(connected: boolean): void;
}

export function memoryOutbox({
  clock = systemClock,
  lease_ms = defaultLease_ms,
  deliver = ({ run }) => queueMicrotask(run),
}: MemoryOutboxOptions = {}): MemoryOutbox {
  const tenants = new Map<TenantId, rules.Tenant>();
  /** When each bucket is full again. */
  const attempts = new Map<string, number>();
  const listeners = new Set<() => void>();
  let run = 1;
  let connected = true;

  const tenantOf = (tenant_id: TenantId): rules.Tenant => {
    const tenant = tenants.get(tenant_id) ?? rules.emptyTenant();
    tenants.set(tenant_id, tenant);
    return tenant;
  };
  /** For reading: what is not there is not made. */
  const seenOf = (tenant_id: TenantId): rules.Tenant => tenants.get(tenant_id) ?? rules.emptyTenant();
  const reconnected = () => {
    for (const listener of [...listeners]) listener();
  };

  const connect = (): Outbox => {
    const own = new Set<() => void>();
    let closed = false;

    const call = <R>(operation: string, effect: () => R): Promise<R> =>
      new Promise<R>((resolve, reject) => {
        const fail = () => reject(new OutboxUnavailable(`${operation}: ${closed ? 'closed' : 'cannot be reached'}`));
        const arrive = () => {
          if (closed || !connected) return fail();
          try {
            const result = effect();
            deliver({ operation, step: 'answer', run: () => resolve(result), fail });
          } catch (error) {
            reject(error);
          }
        };
        deliver({ operation, step: 'call', run: arrive, fail });
      });

    return {
      append(batches) {
        const kept = batches.map((batch) => ({ ...batch, frames: batch.frames.map((frame) => ({ ...frame, body: frame.body.slice() })) }));
        return call('append', () => kept.map((batch) => rules.append(tenantOf(batch.tenant_id), run, clock.now(), batch)));
      },
      seed: (tenant_id, at, limit, last_known) => call('seed', () => rules.seed(tenantOf(tenant_id), run, at, limit, last_known)),
      extend: (tenant_id, limit) => call('extend', () => rules.extend(seenOf(tenant_id), run, limit)),
      read: (tenant_id, after, options) => call('read', () => rules.read(seenOf(tenant_id), run, after, options)),
      heads(tenant_ids) {
        const asked = [...tenant_ids];
        return call('heads', () => asked.map((tenant_id) => seenOf(tenant_id).sequence?.head ?? 0));
      },
      forget: (tenant_id, what) => call('forget', () => rules.forget(seenOf(tenant_id), what)),
      trim: (tenant_id, keep) => call('trim', () => rules.trim(seenOf(tenant_id), clock.now(), keep)),
      register: (tenant_id, device) => call('register', () => rules.register(tenantOf(tenant_id), run, clock.now() + lease_ms, device)),
      unregister: (tenant_id, device) => call('unregister', () => rules.unregister(seenOf(tenant_id), device)),
      refresh(edge_id, held) {
        const kept = [...held];
        return call('refresh', () => {
          const until = clock.now() + lease_ms;
          return kept.flatMap((one) => rules.refresh(tenantOf(one.tenant_id), edge_id, until, one));
        });
      },
      confirm(marks) {
        const kept = [...marks];
        return call('confirm', () => {
          for (const { tenant_id, device_id, cursor } of kept) rules.confirm(tenantOf(tenant_id), device_id, cursor);
        });
      },
      watermark: (tenant_id, device_id) => call('watermark', () => seenOf(tenant_id).marks.get(device_id)),
      devices: (tenant_id) => call('devices', () => rules.devices(seenOf(tenant_id), clock.now())),
      attempt: (of, { per_minute, burst }, count = 1) =>
        call('attempt', () => {
          const now = clock.now();
          const interval = 60_000 / per_minute;
          const full_at = Math.max(now, attempts.get(of) ?? 0) + interval * count;
          const wait = full_at - now - interval * burst;
          if (wait > 0) return Math.ceil(wait);
          if (full_at > now) attempts.set(of, full_at);
          else attempts.delete(of);
          return 0;
        }),
      put(tenant_id, values) {
        const kept = Object.entries(values);
        return call('put', () => {
          const stored = tenantOf(tenant_id).values;
          for (const [name, value] of kept) {
            if (value === null) stored.delete(name);
            else stored.set(name, value);
          }
        });
      },
      values: (tenant_id) => call('values', () => new Map(seenOf(tenant_id).values)),
      drop: (tenant_id) => call('drop', () => void tenants.delete(tenant_id)),
      get connected() {
        return connected && !closed;
      },
      onReconnected(listener) {
        const entry = () => listener();
        listeners.add(entry);
        own.add(entry);
        return () => {
          listeners.delete(entry);
          own.delete(entry);
        };
      },
      async close() {
        closed = true;
        for (const entry of own) listeners.delete(entry);
        own.clear();
      },
    };
  };

  const root = connect();
  return {
    ...root,
    // Spread, it would be what it is now for ever.
    get connected() {
      return root.connected;
    },
    connect,
    forgetEverything() {
      tenants.clear();
      attempts.clear();
      run++;
      reconnected();
    },
    restart() {
      run++;
      reconnected();
    },
    setConnected(now) {
      if (now === connected) return;
      connected = now;
      if (now) reconnected();
    },
  };
}
