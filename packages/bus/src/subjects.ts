import type { EdgeId, SessionId } from '@iris/protocol';

/** Every subject there is. Ids are ours and hold only letters, digits, `-` and `_`, so none can be a wildcard. */
export const subjects = {
  /** Requests of edges to one session instance: {@link ToSession} batches. */
  session: (session_id: SessionId) => `iris.session.${session_id}`,
  /** Workers say to the instance that waits for it that they have looked at a file: JSON of `{tenant_id, media_id}`. */
  mediaReady: (session_id: SessionId) => `iris.media.${session_id}`,
  /** Frames, answers and orders to one edge: {@link ToEdge} batches. */
  edge: (edge_id: EdgeId) => `iris.edge.${edge_id}`,
  /** Served by every edge that takes devices: one that goes asks whether it is the last. Both empty. */
  edges: 'iris.edges',
  /** Session instances say that they are there: {@link Announcement}. */
  announce: 'iris.announce',
  /** An edge that has just come asks them to say so now. Empty. */
  announceAsk: 'iris.announce.ask',
  /** What every process must hear: {@link Control}. */
  control: 'iris.control',
} as const;
