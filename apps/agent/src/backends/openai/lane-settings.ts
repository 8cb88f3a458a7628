import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Log } from '@iris/runtime';
import { fieldsOf, listOf, parsed, stringOf } from './json.js';

export interface LanePlace {
  readonly chat_id: string;
  readonly thread_id: string | null;
}
export const laneKey = ({ chat_id, thread_id }: LanePlace): string => `${chat_id}\n${thread_id ?? ''}`;

/** What people chose for one lane. */
export interface LaneSetting {
  readonly model?: string;
  readonly provider?: string;
  readonly reasoning?: string;
  /** Which of its sessions at the agent it is in, where the agent keeps them. */
  readonly session?: string;
  /** `gateway`: what the agent remembers no longer fits what people kept, so it is told the past each time. */
  readonly memory?: string;
}
type Name = keyof LaneSetting;
const names: readonly Name[] = ['model', 'provider', 'reasoning', 'session', 'memory'];

export interface LaneSettings {
  of(lane: LanePlace): LaneSetting;
  /** Undefined takes a choice back. */
  set(lane: LanePlace, change: { readonly [N in Name]?: string | undefined }): void;
}

const lanes_max = 5_000;

/** @param dir where they are kept; without it they end with the process. A file that cannot be read or written is said, and done without. */
export function laneSettings({ dir, log }: { dir?: string; log: Log }): LaneSettings {
  const path = dir === undefined ? undefined : join(dir, 'lane-settings.json');
  const lanes = path === undefined ? new Map<string, LaneSetting>() : read(path, log);

  const write = () => {
    if (path === undefined || dir === undefined) return;
    try {
      mkdirSync(dir, { recursive: true, mode: 0o700 });
      // In one step, so that a crash leaves the old ones or the new ones.
      writeFileSync(`${path}.new`, JSON.stringify({ v: 1, lanes: [...lanes] }), { mode: 0o600, flush: true });
      renameSync(`${path}.new`, path);
    } catch (error) {
      log.warn('agent.settings_unwritten', { error });
    }
  };
  return {
    of: (lane) => lanes.get(laneKey(lane)) ?? {},
    set(lane, change) {
      const next = { ...lanes.get(laneKey(lane)), ...change };
      const kept = Object.fromEntries(names.flatMap((name) => (next[name] === undefined ? [] : [[name, next[name]]])));
      lanes.delete(laneKey(lane));
      if (Object.keys(kept).length > 0) lanes.set(laneKey(lane), kept);
      for (const oldest of lanes.keys()) {
        if (lanes.size <= lanes_max) break;
        lanes.delete(oldest);
      }
      write();
    },
  };
}

function read(path: string, log: Log): Map<string, LaneSetting> {
  const lanes = new Map<string, LaneSetting>();
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') log.warn('agent.settings_unread', { error });
    return lanes;
  }
  for (const entry of listOf(fieldsOf(parsed(text)).lanes)) {
    const [key, value] = listOf(entry);
    const fields = fieldsOf(value);
    if (typeof key !== 'string') continue;
    lanes.set(key, Object.fromEntries(names.flatMap((name) => (stringOf(fields[name]) === undefined ? [] : [[name, fields[name]]]))));
  }
  return lanes;
}
