import { encode, splice } from '@iris/protocol';
import type { CatchingUp, DeviceConnection, SyncJob } from '../connection.js';
import type { EdgeContext } from '../context.js';
import { withLinks } from '../media-link.js';
import { comeBackIfUnseeded, refuse, respond } from '../outbound.js';
import { lostBefore } from '../pages.js';
import { toTicks } from '../ticks.js';
import { isTold } from '../told.js';

/** Milliseconds without a page until a `sync` is given up. */
export const sync_ms = 10_000;

/**
 * One page of a `sync`: durable frames above its cursor, compacted, each with its cursor, up to the head at the connection's
 * hello. What is above that head this connection gets, or has got, live, in its own time: so nothing is shown twice, and a
 * second `sync` on the same connection repeats only what its cursor asks for again.
 * @returns whether it got anywhere
 */
export async function replay(edge: EdgeContext, connection: DeviceConnection, state: CatchingUp, job: SyncJob): Promise<boolean> {
  const { member } = state;
  job.at ??= member.watermark;
  const from = job.at;
  if (from >= member.head && from <= state.at) return done(edge, connection, state, job);
  try {
    const page = await edge.pages.read(member.feed.tenant_id, from, { compact: true });
    if (connection.state !== state) return false;
    if (from > state.at) {
      // Only the outbox knows whether such a cursor exists.
      if (page.unseeded) return waitForSeed();
      return done(edge, connection, state, job, from > page.head);
    }
    if (lostBefore(page, from)) job.truncated = true;
    for (const entry of page.entries) {
      if (entry.cursor > member.head) break;
      if (entry.except_device_id !== undefined && entry.except_device_id === member.device_id) continue;
      if (isTold(member.told, entry)) continue;
      const body = member.group.links ? withLinks(edge, member.feed.tenant_id, entry.body) : entry.body;
      connection.socket.send(splice(body, { cursor: entry.cursor }));
    }
    edge.meters.frames_out.add(page.entries.length, { class: 'durable' });
    job.at = Math.max(from, Math.min(page.next, member.head));
    if (page.next >= member.head || (page.next >= page.head && !page.unseeded)) return done(edge, connection, state, job);
    if (job.at === from) return waitForSeed();
    job.deadline = edge.time.tick + toTicks(sync_ms);
    return true;

    function waitForSeed(): boolean {
      comeBackIfUnseeded(edge, connection, state, page);
      return giveUpIfDue();
    }
  } catch (error) {
    edge.log.debug('edge.sync_page_failed', { error });
    return connection.state === state && giveUpIfDue();
  }

  /** @returns true when the job is over */
  function giveUpIfDue(): boolean {
    if (edge.time.tick < job.deadline) return false;
    state.syncs.shift();
    if (job.id !== undefined) refuse(edge, connection, job.id, 'internal', 'the outbox cannot be read now');
    return true;
  }
}

function done(edge: EdgeContext, connection: DeviceConnection, state: CatchingUp, job: SyncJob, reset = false): true {
  state.syncs.shift();
  // From its own cursor on it has been given everything: from now on positions may be confirmed.
  state.member.unbroken = true;
  const payload = { cursor: state.at, ...(job.truncated ? { truncated: true } : {}), ...(reset ? { reset: true } : {}) };
  if (job.id !== undefined) respond(edge, connection, encode({ type: 'sync.done', payload }), job.id);
  return true;
}
