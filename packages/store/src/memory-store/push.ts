import type { Cursor, DeviceId, TenantId } from '@iris/protocol';
import { copy } from '../copy.js';
import type { LedgerKey, PushActions, PushFrames, PushLedger, PushLedgerRow, PushRules, PushTargetRow, PushTargets } from '../push.js';
import { lanesBefore } from '../push-lanes.js';
import { hasLane, type MemoryState } from './state.js';

const ledgerKey = ({ device_id, cursor }: Pick<LedgerKey, 'device_id' | 'cursor'>): string => `${cursor}\n${device_id}`;
const isOpen = ({ state }: PushLedgerRow): boolean => state === 'pending' || state === 'sending';
const byCursor = (a: { cursor: Cursor }, b: { cursor: Cursor }): number => a.cursor - b.cursor;

export function memoryPushTargets(state: MemoryState): PushTargets {
  const key = (device_id: DeviceId, kind: string) => `${kind}\n${device_id}`;
  return {
    async register(tenant_id, device_id, targets, at) {
      const tenant = state.tenants.get(tenant_id);
      if (!tenant || tenant.devices.get(device_id)?.revoked_at !== null) return false;
      for (const { kind, address, keys = null } of targets) {
        tenant.push.targets.delete(key(device_id, kind));
        if (address === null) continue;
        for (const { push } of state.tenants.values())
          for (const [one, row] of push.targets) if (row.kind === kind && row.address === address) push.targets.delete(one);
        const registration = state.nextSeq();
        tenant.push.targets.set(key(device_id, kind), { tenant_id, device_id, kind, address, keys, registration, registered_at: at });
      }
      return true;
    },
    async list(tenant_id, device_id) {
      const tenant = state.tenants.get(tenant_id);
      const stands = (row: PushTargetRow) => tenant?.devices.get(row.device_id)?.revoked_at === null;
      return [...(tenant?.push.targets.values() ?? [])]
        .filter((row) => (device_id === undefined || row.device_id === device_id) && stands(row))
        .map(copy);
    },
    async drop({ tenant_id, device_id, kind, registration }) {
      const targets = state.tenants.get(tenant_id)?.push.targets;
      if (targets?.get(key(device_id, kind))?.registration !== registration) return false;
      return targets.delete(key(device_id, kind));
    },
  };
}

export function memoryPushRules(state: MemoryState): PushRules {
  return {
    async set(row) {
      const tenant = state.tenants.get(row.tenant_id);
      if (!tenant?.devices.has(row.device_id)) return false;
      const key = JSON.stringify([row.device_id, row.chat_id, row.thread_id]);
      if (row.muted_until === null && row.quiet === null) tenant.push.rules.delete(key);
      else tenant.push.rules.set(key, copy(row));
      return true;
    },
    list: async (tenant_id) => [...(state.tenants.get(tenant_id)?.push.rules.values() ?? [])].map(copy),
    content: async (tenant_id) => state.tenants.get(tenant_id)?.push.content ?? 'full',
    async setContent(tenant_id, content) {
      const tenant = state.tenants.get(tenant_id);
      if (tenant) tenant.push.content = content;
      return tenant !== undefined;
    },
  };
}

export function memoryPushFrames(state: MemoryState): PushFrames {
  const framesOf = (tenant_id: TenantId) => [...(state.tenants.get(tenant_id)?.push.frames.values() ?? [])].sort(byCursor);
  return {
    async note(rows) {
      for (const row of rows) {
        const tenant = state.tenants.get(row.tenant_id);
        if (hasLane(tenant, row) && !tenant.push.frames.has(row.cursor))
          tenant.push.frames.set(row.cursor, { ...copy(row), decided: false });
      }
    },
    undecided: async (tenant_id) =>
      framesOf(tenant_id)
        .filter(({ decided }) => !decided)
        .map(copy),
    get: async (tenant_id, cursors) =>
      framesOf(tenant_id)
        .filter(({ cursor }) => cursors.includes(cursor))
        .map(copy),
    async decided(tenant_id, cursors) {
      const frames = state.tenants.get(tenant_id)?.push.frames;
      for (const cursor of cursors) {
        const row = frames?.get(cursor);
        if (row) frames!.set(cursor, { ...row, decided: true });
      }
    },
    overdue: async (before, limit) =>
      [...state.tenants]
        .filter(([, { push }]) => [...push.frames.values()].some(({ decided, at }) => !decided && at <= before))
        .slice(0, limit)
        .map(([tenant_id]) => tenant_id),
    async prune(before) {
      for (const { push } of state.tenants.values()) {
        for (const [cursor, { at }] of push.frames) if (at < before) push.frames.delete(cursor);
        for (const [key, { decided_at }] of push.ledger) if (decided_at < before) push.ledger.delete(key);
        for (const [hash, { expires_at }] of push.actions) if (expires_at < before) push.actions.delete(hash);
      }
    },
  };
}

export function memoryPushLedger(state: MemoryState): PushLedger {
  const ledgerOf = (tenant_id: TenantId) => state.tenants.get(tenant_id)?.push.ledger ?? new Map<string, PushLedgerRow>();
  const change = (key: LedgerKey, next: (row: PushLedgerRow) => PushLedgerRow | undefined): boolean => {
    const ledger = ledgerOf(key.tenant_id);
    const row = ledger.get(ledgerKey(key));
    const changed = row && next(row);
    if (changed) ledger.set(ledgerKey(key), changed);
    return changed !== undefined;
  };
  return {
    async decide(rows) {
      return rows.flatMap(({ ...row }) => {
        const tenant = state.tenants.get(row.tenant_id);
        if (!tenant?.devices.has(row.device_id) || tenant.push.ledger.has(ledgerKey(row))) return [];
        tenant.push.ledger.set(ledgerKey(row), copy(row));
        return [{ tenant_id: row.tenant_id, device_id: row.device_id, cursor: row.cursor }];
      });
    },
    async claim(keys, now, until) {
      const away = ({ tenant_id, device_id, decided_at }: PushLedgerRow) => {
        const device = state.tenants.get(tenant_id)?.devices.get(device_id);
        const tenant = state.tenants.get(tenant_id);
        if (device === undefined || device.revoked_at !== null || tenant?.row.state !== 'active') return false;
        const token = tenant.tokens.get(device.token_id);
        const over = token !== undefined && (token.revoked_at !== null || (token.expires_at ?? now) < now);
        return !over && device.last_seen_at <= decided_at;
      };
      const free = (row: PushLedgerRow) => away(row) && (row.state === 'pending' || (row.state === 'sending' && row.due_at <= now));
      const won = keys.filter((key) => change(key, (row) => (free(row) ? { ...row, state: 'sending', due_at: until } : undefined)));
      return won.map((key) => {
        const { tenant_id, device_id, cursor } = key;
        const rows = [...ledgerOf(tenant_id).values()].filter((row) => row.device_id === device_id);
        const since = state.tenants.get(tenant_id)?.devices.get(device_id)?.last_seen_at ?? 0;
        return { tenant_id, device_id, cursor, lanes_before: lanesBefore(rows, ledgerOf(tenant_id).get(ledgerKey(key))!, since) };
      });
    },
    async record(outcomes) {
      for (const { attempted, at, ...outcome } of outcomes) {
        const { state: next, why, provider, answer, due_at } = outcome;
        const applied = change(outcome, (row) => {
          if (next === 'sent' ? row.state === 'sent' : !isOpen(row)) return undefined;
          const sent_at = next === 'sent' ? at : row.sent_at;
          return { ...row, state: next, why, provider, answer, due_at, sent_at, attempts: row.attempts + (attempted ? 1 : 0) };
        });
        const tenant = state.tenants.get(outcome.tenant_id);
        const device = tenant?.devices.get(outcome.device_id);
        const { covers = 0 } = ledgerOf(outcome.tenant_id).get(ledgerKey(outcome)) ?? {};
        if (applied && next === 'sent' && tenant && device)
          tenant.devices.set(device.device_id, { ...device, last_pushed_cursor: Math.max(device.last_pushed_cursor, covers) });
      }
    },
    due: async (now, limit) =>
      [...state.tenants.values()]
        .flatMap(({ push }) => [...push.ledger.values()].filter((row) => isOpen(row) && row.due_at <= now))
        .sort((a, b) => a.due_at - b.due_at)
        .slice(0, limit)
        .map(copy),
    async release(key, now) {
      for (const row of ledgerOf(key.tenant_id).values())
        if (row.device_id === key.device_id && row.state === 'collapsed' && row.with_cursor === key.cursor)
          change(row, () => ({ ...row, state: 'pending', with_cursor: null, covers: row.cursor, due_at: now }));
    },
    async fence(tenant_id, device_id, at) {
      let under_way = 0;
      for (const row of ledgerOf(tenant_id).values()) {
        if (row.device_id !== device_id) continue;
        if (row.state === 'sending' && row.due_at > at) under_way++;
        if (row.state === 'pending') change(row, () => ({ ...row, state: 'skipped', why: 'hello' }));
      }
      return { under_way, last_pushed_cursor: state.tenants.get(tenant_id)?.devices.get(device_id)?.last_pushed_cursor ?? 0 };
    },
    of: async (tenant_id, cursors) => [...ledgerOf(tenant_id).values()].filter(({ cursor }) => cursors.includes(cursor)).map(copy),
    keysOf: async (tenant_id, cursors) =>
      [...ledgerOf(tenant_id).values()]
        .filter(({ cursor }) => cursors.includes(cursor))
        .map(({ device_id, cursor }) => ({ tenant_id, device_id, cursor })),
    explain: async (tenant_id, device_id, { cursor = Number.MAX_SAFE_INTEGER, limit }) =>
      [...ledgerOf(tenant_id).values()]
        .filter((row) => row.device_id === device_id && row.cursor <= cursor)
        .sort((a, b) => b.cursor - a.cursor)
        .slice(0, limit)
        .map(copy),
    shown: async (tenant_id) =>
      [...ledgerOf(tenant_id).values()].filter((row) => row.state === 'sent' && row.withdrawn_at === null).map(copy),
    async withdrawn(keys, at) {
      for (const key of keys) change(key, (row) => ({ ...row, withdrawn_at: row.withdrawn_at ?? at }));
    },
  };
}

export function memoryPushActions(state: MemoryState): PushActions {
  const usable = (tenant_id: TenantId, hash: string, by: string, now: number) => {
    const row = state.tenants.get(tenant_id)?.push.actions.get(hash);
    return row && row.expires_at > now && (row.used_by === null || row.used_by === by) ? row : undefined;
  };
  return {
    async add(rows) {
      for (const { tenant_id, hash, ...row } of rows) {
        const tenant = state.tenants.get(tenant_id);
        if (tenant?.pickers.has(row.picker_id)) tenant.push.actions.set(hash, { ...row, used_by: null });
      }
    },
    async find(tenant_id, hash, by, now) {
      const row = usable(tenant_id, hash, by, now);
      return row && { picker_id: row.picker_id, device_id: row.device_id };
    },
    async use(tenant_id, hash, by, now) {
      const row = usable(tenant_id, hash, by, now);
      if (!row) return undefined;
      row.used_by = by;
      return { picker_id: row.picker_id, device_id: row.device_id };
    },
  };
}
