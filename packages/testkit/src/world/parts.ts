import { createEdge, defaultEdgeConfig, type EdgeStats, type Opening, type Socket, type SocketEvents, type SocketGroups } from '@iris/edge';
import type { ConnectionId, EdgeId, SessionId } from '@iris/protocol';
import { type Log, makeIds, noMeter } from '@iris/runtime';
import { createSession, defaultSessionConfig } from '@iris/session';
import { createWorker, defaultWorkerConfig, type Http } from '@iris/worker';
import type { Node } from './backbone.js';

/** What the world needs of a running edge. */
export interface EdgePart {
  accept(socket: Socket, opening: Opening): SocketEvents;
  answerPush(body: string, address: string): Promise<{ readonly status: number; readonly body: string }>;
  stats(): EdgeStats;
  stop(): Promise<void>;
}
/** …and of a session instance. */
export interface SessionPart {
  stop(): Promise<void>;
}
export interface EdgeStart {
  readonly edge_id: EdgeId;
  readonly node: Node;
  readonly groups: SocketGroups;
  readonly log: Log;
  readonly config: Record<string, unknown>;
}
export interface SessionStart {
  readonly session_id: SessionId;
  readonly node: Node;
  readonly log: Log;
  readonly config: Record<string, unknown>;
}

/** An edge as its own `main` starts it, on what the world gives it. */
export async function startEdgePart({ edge_id, node, groups, log, config }: EdgeStart): Promise<EdgePart> {
  const { bus, outbox, media, clock, chance } = node;
  const ids = makeIds({ clock, random: chance });
  const edge = createEdge(
    {
      bus,
      outbox,
      media,
      clock,
      log,
      meter: noMeter,
      edge_id,
      groups,
      random: chance,
      newConnectionId: () => ids.sortable() as ConnectionId,
    },
    { ...defaultEdgeConfig, media_secret: 'signs links to files', ...config },
  );
  await edge.start();
  return {
    accept: (socket, opening) => edge.accept(socket, opening),
    answerPush: (body, address) => edge.answerPush(body, address),
    stats: () => edge.stats(),
    async stop() {
      await edge.drain({ within_ms: 5_000 });
      await edge.stop();
    },
  };
}

/** A session instance as its own `main` starts it. */
export async function startSessionPart({ session_id, node, log, config }: SessionStart): Promise<SessionPart> {
  const { bus, outbox, store, jobs, clock, chance } = node;
  const session = createSession(
    { bus, outbox, store, jobs, clock, log, meter: noMeter, random: chance, session_id },
    { ...defaultSessionConfig, ...config },
  );
  await session.start();
  return { stop: () => session.stop({ within_ms: 10_000 }) };
}

/** A worker, likewise: it does the upkeep, and the pushes. */
export async function startWorkerPart(start: {
  readonly node: Node;
  readonly log: Log;
  readonly config: Record<string, unknown>;
  readonly http?: Http;
}): Promise<SessionPart> {
  const { node, log, config, http } = start;
  const { bus, outbox, store, media, jobs, clock, chance } = node;
  const worker = createWorker(
    { bus, outbox, store, media, jobs, clock, random: chance, log, meter: noMeter, ...(http === undefined ? {} : { http }) },
    { ...defaultWorkerConfig, ...config },
  );
  await worker.start();
  return { stop: () => worker.stop() };
}
