import type { Log } from '@iris/runtime';
import type { Timeline } from '../timeline.js';

export interface LoggedEvent {
  readonly at: number;
  readonly level: 'warn' | 'error';
  readonly from: string;
  readonly event: string;
  readonly fields: Record<string, unknown>;
}

/** What the parts of a world warned of. */
export interface EventLog {
  readonly all: readonly LoggedEvent[];
  of(name: string): Log;
  /** The last few, for a failure's message. */
  tail(): string;
}

export function eventLog(time: Timeline): EventLog {
  const all: LoggedEvent[] = [];
  const of = (from: string, bound: Record<string, unknown> = {}): Log => {
    const say = (level: LoggedEvent['level']) => (event: string, fields?: Record<string, unknown>) =>
      void all.push({ at: time.now(), level, from, event, fields: { ...bound, ...fields } });
    return { debug() {}, info() {}, warn: say('warn'), error: say('error'), child: (fields) => of(from, { ...bound, ...fields }) };
  };
  return {
    all,
    of: (name) => of(name),
    tail() {
      const lines = all.slice(-8).map(({ at, level, from, event, fields }) => {
        const { error, ...rest } = fields;
        const cause = error instanceof Error ? ` ${error.stack ?? error.message}` : error === undefined ? '' : ` ${String(error)}`;
        return `  ${at % 1_000_000} ${level} ${from} ${event} ${JSON.stringify(rest)}${cause}`;
      });
      return lines.length === 0 ? '' : `\nlast warnings:\n${lines.join('\n')}`;
    },
  };
}
