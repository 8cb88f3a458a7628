import { type Lane, laneKey, type TenantId } from '@iris/protocol';
import type { Timer } from '@iris/runtime';
import type { AgentRow } from '@iris/store';
import type { Context } from '../context.js';
import type { Effects } from '../emission.js';
import { messageOut } from '../rules/frames.js';
import { messageIdOf } from '../rules/ids.js';
import { messageRow } from '../rules/rows.js';
import type { AgentLink } from './link.js';

const text = 'No agent is connected. Your message waits here and is delivered when one connects.';
/** Lanes that are remembered as told; the store knows it as well. */
const noticedMax = 2_000;

/** Tells a lane that waits for an agent, once per lane and absence. */
export interface Notice {
  say(tenant_id: TenantId, lane: Lane, agent: AgentRow, link: AgentLink | undefined): Promise<Effects>;
  /** Asks no more: a lane that has not waited long enough is told by the instance that looks at it next. */
  stop(): void;
}

/** @param again asks once more, when the lane has waited long enough */
export function createNotice(context: () => Context, again: (tenant_id: TenantId, lane: Lane) => void): Notice {
  const noticed = new Set<string>();
  /** Lanes that wait and may have to be told, with the time since when. */
  const waitsSince = new Map<string, number>();
  const timers = new Set<Timer>();

  const say: Notice['say'] = async (tenant_id, lane, agent, link) => {
    const { store, clock, config } = context();
    const key = `notice:${agent.agent_id}:${link?.epoch ?? agent.epoch}:${laneKey(lane)}`;
    const id = `${tenant_id}\n${key}`;
    if (noticed.has(id) || (await store.turns.waiting(tenant_id, lane)) === 0) return {};
    const since = waitsSince.get(id) ?? Math.max(clock.now(), link?.seen_at ?? 0);
    const wait = since + config.notice_ms - clock.now();
    if (wait > 0) {
      if (!waitsSince.has(id)) {
        const timer = clock.after(wait, () => {
          timers.delete(timer);
          again(tenant_id, lane);
        });
        timers.add(timer);
      }
      waitsSince.set(id, since);
      return {};
    }
    waitsSince.delete(id);
    const row = messageRow(tenant_id, lane, messageIdOf(tenant_id, key), { role: 'system', text, ts: clock.now() });
    const stored = (await store.messages.insert([{ message: row }]))[0];
    if (noticed.size >= noticedMax) noticed.clear();
    noticed.add(id);
    // One that has a place was shown.
    return typeof stored !== 'object' || stored.row.cursor !== null ? {} : { frames: [messageOut(stored.row)] };
  };

  return {
    say,
    stop() {
      for (const timer of timers) timer.cancel();
      timers.clear();
    },
  };
}
