import type { Cursor } from '@iris/protocol';
import { answerMissed, sendAddressed, takeAwaited } from './answers.js';
import type { CatchingUp, DeviceConnection, Member, SyncJob } from './connection.js';
import type { EdgeContext } from './context.js';
import { type Ephemeral, type Feed, seek } from './feed.js';
import { replay } from './local/replay.js';
import { withLinks } from './media-link.js';
import { close, comeBackIfUnseeded, join, leave } from './outbound.js';
import { lostBefore } from './pages.js';
import { isLagging, pingDevice } from './pulse.js';
import { follow, gap, isOwn, isStreamed, piecesOf } from './streams.js';

/** Leave the publish group, or begin behind it: from here the connection reads from the outbox at its own pace. */
export function fallBehind(
  edge: EdgeContext,
  connection: DeviceConnection,
  member: Member,
  at: Cursor,
  syncs: SyncJob[] = [],
  held?: CatchingUp['held'],
): void {
  leave(connection, member);
  if (held === undefined) gap(member.streams);
  connection.state = { kind: 'catching_up', member, at, syncs, held, reading: false, stuck_since: 0 };
  member.feed.behind.add(connection);
  pump(edge, connection);
}

/** The same for one that lags but misses nothing yet: an update that it is to get later is about to come. */
export function holdUpdates(edge: EdgeContext, connection: DeviceConnection, member: Member, at: Cursor) {
  fallBehind(edge, connection, member, at, [], new Map());
}

/** Go on, as far as the socket and the feed allow; whatever they wait for calls this again. */
export function pump(edge: EdgeContext, connection: DeviceConnection) {
  const { state } = connection;
  if (state.kind !== 'catching_up' || state.reading) return;
  // `drained` comes when there is room. Whoever reads so slowly is given running messages whole when it has caught up.
  if (connection.socket.buffered() > edge.config.low_mark_bytes) return gap(state.member.streams);
  const [job] = state.syncs;
  if (job !== undefined) return void run(edge, connection, state, () => replay(edge, connection, state, job));
  const { feed } = state.member;
  if (state.at === feed.last) return goLive(edge, connection, state);
  // It has read what this edge has not been sent yet: the feed comes to where it stands and takes it along.
  if (state.at > feed.last) return seek(edge, feed, state.at);
  void run(edge, connection, state, () => readOn(edge, connection, state));
}

/** One page, once at a time per connection. `step` says whether it got anywhere. */
async function run(edge: EdgeContext, connection: DeviceConnection, state: CatchingUp, step: () => Promise<boolean>): Promise<void> {
  state.reading = true;
  let moved = false;
  try {
    moved = await step();
  } catch (error) {
    edge.log.debug('edge.page_failed', { error });
  }
  state.reading = false;
  if (connection.state !== state) return;
  if (moved) {
    state.stuck_since = 0;
    pump(edge, connection);
  } else {
    if (state.stuck_since === 0) state.stuck_since = edge.time.tick;
    edge.stuck.add(connection);
  }
}

/** Each tick: those who came to nothing try again. */
export function stuckTick(edge: EdgeContext): void {
  for (const connection of [...edge.stuck]) {
    edge.stuck.delete(connection);
    pump(edge, connection);
  }
}

async function readOn(edge: EdgeContext, connection: DeviceConnection, state: CatchingUp): Promise<boolean> {
  const { member } = state;
  const page = await edge.pages.read(member.feed.tenant_id, state.at);
  if (connection.state !== state) return false;
  if (lostBefore(page, state.at)) {
    close(edge, connection, 'restarting', 'frames were lost; sync');
    return false;
  }
  for (const entry of page.entries) {
    if (entry.except_device_id !== undefined && entry.except_device_id === member.device_id) continue;
    const body = member.group.links ? withLinks(edge, member.feed.tenant_id, entry.body) : entry.body;
    sendAddressed(connection, { ...entry, body }, takeAwaited(member.feed, entry.cursor, connection), member.group.cursors);
    follow(member.streams, entry.type, entry.message_id);
  }
  edge.meters.frames_out.add(page.entries.length, { class: 'durable' });
  const moved = page.next > state.at;
  state.at = Math.max(state.at, page.next);
  answerMissed(edge, connection, state.at);
  if (!moved) comeBackIfUnseeded(edge, connection, state, page);
  return moved;
}

/** The feed has moved: take along who stands where it stands, wake who is behind it. */
export function wakeBehind(edge: EdgeContext, feed: Feed): void {
  for (const connection of feed.behind) {
    const { state } = connection;
    if (state.kind === 'catching_up' && !state.reading && state.at <= feed.last) pump(edge, connection);
  }
}

/**
 * In one tick: the last page is in the socket, the next frame comes by the group. While updates are held for a device that lags
 * it stays where it is, and what is durable goes on being read; its next pong, or its empty buffer, brings it here again.
 */
function goLive(edge: EdgeContext, connection: DeviceConnection, state: CatchingUp) {
  const { member, held } = state;
  const { feed } = member;
  if (held !== undefined && isLagging(edge, connection, member)) return;
  connection.state = { kind: 'live', member };
  join(connection, member);
  if (held === undefined) return;
  for (const [key, frame] of held) {
    const stale = (frame.message_id !== undefined && feed.ended.has(frame.message_id)) || frame.rev < (feed.revs.get(key) ?? -1);
    if (stale) continue;
    const own = member.streams !== undefined && isStreamed(frame.type) && isOwn(member.streams, frame.type);
    const piece = own ? piecesOf(frame.body)(member.streams!) : frame.body;
    if (piece !== undefined) connection.socket.send(piece);
  }
  edge.meters.frames_out.add(held.size, { class: 'ephemeral' });
  if (member.slow) pingDevice(edge, connection, member);
}

const heldMax = 256;
/** Keep an ephemeral for when the connection has caught up; of each key the newest. */
export function holdFor(connection: DeviceConnection, frame: Ephemeral): void {
  const { state } = connection;
  if (state.kind !== 'catching_up') return;
  state.held ??= new Map();
  const key = frame.key === '' ? `\n${state.held.size}` : frame.key;
  if (state.held.size >= heldMax && !state.held.has(key)) return;
  state.held.set(key, { type: frame.type, rev: frame.rev, message_id: frame.message_id, body: frame.body });
}
