/**
 * The edge's one timer beats every {@link tick_ms}; deadlines and silences are counted in ticks, not on a clock: a clock
 * may be set, and after a frozen process thaws a clock says that everyone was silent for long, while ticks say how
 * much of that time we were there to hear them.
 */
export const tick_ms = 250;
export const toTicks = (ms: number): number => Math.max(1, Math.ceil(ms / tick_ms));
