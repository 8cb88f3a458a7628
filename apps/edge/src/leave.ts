import type { DeviceId, TenantId } from '@iris/protocol';
import { forgetAwaited } from './answers.js';
import { dismiss, markOf } from './confirm.js';
import { type DeviceConnection, memberOf } from './connection.js';
import type { EdgeContext } from './context.js';
import { releaseFeed } from './feed.js';
import { wakePull } from './local/media-pull.js';
import { uploadsLeft } from './local/media-upload.js';
import { leave } from './outbound.js';

/** A device's socket is closed, by whomever. Nothing of it is left here but requests that are still asked. */
export function closed(edge: EdgeContext, connection: DeviceConnection): void {
  const { state } = connection;
  if (state.kind === 'closed') return;
  const member = memberOf(connection);
  const mark = edge.confirmed.delete(connection) ? markOf(connection) : undefined;
  if (member !== undefined) {
    leave(connection, member);
    forgetAwaited(member.feed, connection);
    member.feed.behind.delete(connection);
    releaseFeed(edge, member.feed);
    keepBucket(edge, member.feed.tenant_id, member.device_id, member.sends_full_at);
  }
  connection.state = { kind: 'closed' };
  if (member !== undefined) {
    uploadsLeft(edge, member);
    wakePull(member.pulls);
  }
  dismiss(edge, connection);
  edge.stuck.delete(connection);
  if (edge.greeting.delete(connection)) edge.addresses.leave(connection.address);
  if (member !== undefined) {
    const said: Promise<void> = goodbye(edge, connection, member.feed.tenant_id, member.device_id, mark).then(
      () => void edge.goodbyes.delete(said),
    );
    edge.goodbyes.add(said);
  }
  // Without a hello nobody knows of it.
  if (connection.asked === 0) edge.connections.delete(connection.connection_id);
  else edge.forward.leave(connection);
}

/** The last receipt first: what the device has must not be pushed to it because it left. */
async function goodbye(
  edge: EdgeContext,
  { connection_id }: DeviceConnection,
  tenant_id: TenantId,
  device_id: DeviceId,
  mark: ReturnType<typeof markOf>,
): Promise<void> {
  try {
    if (mark !== undefined) await edge.outbox.confirm([mark]);
    await edge.outbox.unregister(tenant_id, { device_id, edge_id: edge.edge_id, connection_id });
  } catch (error) {
    // Its lease runs out by itself.
    edge.log.debug('edge.unregister_failed', { error });
  }
}

const bucketsMax = 10_000;
function keepBucket(edge: EdgeContext, tenant_id: TenantId, device_id: DeviceId, full_at: number): void {
  if (full_at <= edge.clock.now()) return;
  edge.left_buckets.set(`${tenant_id}\n${device_id}`, full_at);
  if (edge.left_buckets.size > bucketsMax) edge.left_buckets.delete(edge.left_buckets.keys().next().value!);
}

/** The send bucket of a device that was here a moment ago. */
export function takeBucket(edge: EdgeContext, tenant_id: TenantId, device_id: DeviceId): number {
  const key = `${tenant_id}\n${device_id}`;
  const full_at = edge.left_buckets.get(key) ?? 0;
  edge.left_buckets.delete(key);
  return full_at;
}
