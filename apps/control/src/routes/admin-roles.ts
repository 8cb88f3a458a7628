import type { Needs } from '../actor.js';

/** What a route wants: to look, to change, or to give rights and take things out for good. */
export const look = { needs: { role: 'read-only' } satisfies Needs } as const;
export const change = { needs: { role: 'admin' } satisfies Needs } as const;
export const own = { needs: { role: 'owner' } satisfies Needs } as const;
/** …and only of those who run the whole. */
export const operators = {
  look: { needs: { role: 'read-only', operator: true } satisfies Needs },
  change: { needs: { role: 'admin', operator: true } satisfies Needs },
  own: { needs: { role: 'owner', operator: true } satisfies Needs },
} as const;
