import { type Control, type ToEdge, unpack } from '@iris/bus';
import { agentAnswered, agentFrame } from './agent/deliver.js';
import { answer } from './answers.js';
import { type DeviceConnection, memberOf } from './connection.js';
import type { EdgeContext } from './context.js';
import { helloAnswered } from './hello.js';
import { receive } from './inbound.js';
import { mediaAnswered } from './media-ask.js';
import { close, restartingFrame } from './outbound.js';
import { durable, ephemeral } from './repair.js';
import { toTicks } from './ticks.js';

/** One bus message: all its frames go to the sockets in this tick, so that each socket is written once. */
export function deliver(edge: EdgeContext, data: Uint8Array) {
  let records: ToEdge[];
  try {
    records = unpack<ToEdge>(data);
  } catch (error) {
    return edge.log.error('edge.bad_batch', { error, bytes: data.length });
  }
  for (const record of records) {
    try {
      one(edge, record);
    } catch (error) {
      // A frame that cannot be handled must not take those behind it along: its loss is a gap, and gaps are repaired.
      edge.log.error('edge.bad_record', { error, kind: record.kind });
    }
  }
}

function one(edge: EdgeContext, record: ToEdge) {
  switch (record.kind) {
    case 'durable': {
      const feed = edge.feeds.get(record.tenant_id);
      if (feed !== undefined) durable(edge, feed, record);
      return;
    }
    case 'ephemeral': {
      const feed = edge.feeds.get(record.tenant_id);
      if (feed !== undefined) ephemeral(edge, feed, record);
      return;
    }
    case 'answer': {
      const answering = edge.answering.get(record.connection_id);
      if (answering !== undefined) return answering.settle(record.body);
      const connection = edge.connections.get(record.connection_id);
      if (connection === undefined) return mediaAnswered(edge, record.connection_id, record.n, record.body);
      if (connection.peer === 'agent') return agentAnswered(edge, connection, record);
      // The first request of a connection is its hello.
      if (record.n === 1) return helloAnswered(edge, connection, record, (frame, binary) => receive(edge, connection, frame, binary));
      return answer(edge, connection, record);
    }
    case 'close': {
      const connection = edge.connections.get(record.connection_id);
      edge.meters.closed.add(1, { code: record.code });
      return connection?.socket.close(record.code, record.reason);
    }
    case 'agent': {
      const link = edge.connections.get(record.connection_id);
      if (link?.peer === 'agent') agentFrame(edge, link, record);
    }
  }
}

/** How long a revocation is remembered for those whose hello is being answered: longer than that can take. */
const revokedKept_ms = 15_000;

export function control(edge: EdgeContext, data: Uint8Array) {
  let order: Control;
  try {
    order = JSON.parse(new TextDecoder().decode(data)) as Control;
  } catch (error) {
    return edge.log.error('edge.bad_control', { error });
  }
  if (order.kind === 'restarting') return tellRestarting(edge);
  // A tenant that was suspended and goes on: who comes now is not one of those who were closed.
  if (order.kind === 'changed' && order.what === 'tenant')
    edge.revoked.splice(0, edge.revoked.length, ...edge.revoked.filter((one) => one.tenant_id !== order.tenant_id || isPart(one)));
  if (order.kind !== 'revoked') return;
  const { tenant_id, token_id, device_id } = order;
  const { tick } = edge.time;
  while (edge.revoked.length > 0 && tick - edge.revoked[0]!.tick > toTicks(revokedKept_ms)) edge.revoked.shift();
  edge.revoked.push({
    tenant_id,
    tick,
    ...(token_id === undefined ? {} : { token_id }),
    ...(device_id === undefined ? {} : { device_id }),
  });
  const meant = (connection: DeviceConnection): boolean => {
    const member = memberOf(connection);
    return (token_id === undefined || member?.token_id === token_id) && (device_id === undefined || member?.device_id === device_id);
  };
  const feed = edge.feeds.get(tenant_id);
  for (const connection of [...(feed?.live ?? []), ...(feed?.behind ?? [])]) if (meant(connection)) close(edge, connection, 'revoked');
  for (const link of edge.connections.values())
    if (
      link.peer === 'agent' &&
      link.tenant_id === tenant_id &&
      device_id === undefined &&
      (token_id === undefined || link.token_id === token_id)
    )
      link.socket.close(4403, 'revoked');
  // What was given to all of a tenant ends with the tenant, what was given to one with that one.
  for (const [exchange, { tenant_id: whose, by }] of edge.following)
    if (
      whose === tenant_id &&
      (token_id === undefined || by?.token_id === token_id) &&
      (device_id === undefined || by?.device_id === device_id)
    )
      exchange.cut();
}

const isPart = ({ token_id, device_id }: EdgeContext['revoked'][number]) => token_id !== undefined || device_id !== undefined;

/** Apps show this as a notice: only when the service as a whole goes. */
export function tellRestarting(edge: EdgeContext): void {
  for (const feed of edge.feeds.values()) {
    for (const { name, count } of feed.groups) if (count > 0) edge.groups.publish(name, restartingFrame);
    for (const connection of feed.behind) connection.socket.send(restartingFrame);
  }
}
