import type { Usage, UsageDay } from '../store.js';
import type { MemoryState, TenantState } from './state.js';

const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10);
const none = { user_messages: 0, agent_messages: 0, turns: 0, media_files: 0, media_bytes: 0 };
type Counts = typeof none;

const messageCounts = (role: string): Partial<Counts> => (role === 'user' ? { user_messages: 1 } : { agent_messages: 1 });

function add(days: Map<string, UsageDay>, day: string, more: Partial<Counts>): void {
  const old = days.get(day) ?? { day, ...none };
  const sums = Object.entries(more).map(([name, n]) => [name, old[name as keyof Counts] + n]);
  days.set(day, { ...old, ...Object.fromEntries(sums) });
}

/** It was accepted and goes now: it stays counted. */
export const goneMessage = ({ gone }: TenantState, { ts, role }: { readonly ts: number; readonly role: string }): void =>
  add(gone, dayOf(ts), messageCounts(role));
export const goneTurn = ({ gone }: TenantState, { created_at }: { readonly created_at: number }): void =>
  add(gone, dayOf(created_at), { turns: 1 });
export function goneMedia(
  { gone }: TenantState,
  row: { readonly created_at: number; readonly size: number; readonly state: string },
): void {
  if (row.state !== 'uploading') add(gone, dayOf(row.created_at), { media_files: 1, media_bytes: row.size });
}

export function memoryUsage(state: MemoryState): Usage {
  return {
    async days(tenant_id, from, to) {
      const tenant = state.tenants.get(tenant_id);
      const days = new Map(tenant?.gone);
      for (const { row } of tenant?.messages.values() ?? []) add(days, dayOf(row.ts), messageCounts(row.role));
      for (const { created_at } of tenant?.turns.values() ?? []) add(days, dayOf(created_at), { turns: 1 });
      for (const { row } of tenant?.media.values() ?? [])
        if (row.state !== 'uploading') add(days, dayOf(row.created_at), { media_files: 1, media_bytes: row.size });
      return [...days.values()].filter(({ day }) => day >= from && day <= to).sort((a, b) => (a.day < b.day ? -1 : 1));
    },
  };
}
