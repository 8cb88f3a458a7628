/**
 * What stands in place of a withdrawn frame: its number stays, since the link's `seq` rises by one, and the type is one that
 * every agent ignores and acks.
 */
export const voidFrame: Readonly<Record<string, unknown>> = Object.freeze({ v: 1, type: 'void' });

/** How long the key of a frame that is acked is remembered. */
export const frameKeysKept_ms = 24 * 3600 * 1000;
