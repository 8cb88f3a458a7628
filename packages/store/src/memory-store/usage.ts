import type { Usage, UsageDay } from '../store.js';
import type { MemoryState } from './state.js';

const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10);
const none = { user_messages: 0, agent_messages: 0, turns: 0, media_files: 0, media_bytes: 0 };

export function memoryUsage(state: MemoryState): Usage {
  return {
    async days(tenant_id, from, to) {
      const days = new Map<string, UsageDay>();
      const add = (ms: number, more: Partial<typeof none>) => {
        const day = dayOf(ms);
        if (day < from || day > to) return;
        const old = days.get(day) ?? { day, ...none };
        const sums = Object.entries(more).map(([name, n]) => [name, old[name as keyof typeof none] + n]);
        days.set(day, { ...old, ...Object.fromEntries(sums) });
      };
      const tenant = state.tenants.get(tenant_id);
      for (const { row } of tenant?.messages.values() ?? [])
        add(row.ts, row.role === 'user' ? { user_messages: 1 } : { agent_messages: 1 });
      for (const { created_at } of tenant?.turns.values() ?? []) add(created_at, { turns: 1 });
      for (const { row } of tenant?.media.values() ?? []) add(row.created_at, { media_files: 1, media_bytes: row.size });
      return [...days.values()].sort((a, b) => (a.day < b.day ? -1 : 1));
    },
  };
}
