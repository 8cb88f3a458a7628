import type { Lane } from '@iris/protocol';
import type { PushRuleRow, QuietHours } from '@iris/store';

/** Why the device does not want this now; undefined when it does. */
export function unwanted(rules: readonly PushRuleRow[], lane: Lane, now: number): 'muted' | 'quiet hours' | undefined {
  const about = rules.filter(({ chat_id, thread_id }) => chat_id === null || (chat_id === lane.chat_id && thread_id === lane.thread_id));
  if (about.some(({ muted_until }) => muted_until !== null && muted_until > now)) return 'muted';
  if (about.some(({ quiet }) => quiet !== null && isQuiet(quiet, now))) return 'quiet hours';
  return undefined;
}

/** Times of day compare as they are written; `to` before `from` reaches over midnight. */
export function isQuiet({ from, to, time_zone }: QuietHours, now: number): boolean {
  const time = timeOfDay(time_zone).format(now);
  return from <= to ? from <= time && time < to : time >= from || time < to;
}

const formats = new Map<string, Intl.DateTimeFormat>();
/** Making one costs a hundred times what using it does. There are about six hundred zones. */
function timeOfDay(timeZone: string): Intl.DateTimeFormat {
  let format = formats.get(timeZone);
  if (format === undefined) {
    format = new Intl.DateTimeFormat('en-GB', { timeZone, hour: '2-digit', minute: '2-digit', hourCycle: 'h23' });
    formats.set(timeZone, format);
  }
  return format;
}
