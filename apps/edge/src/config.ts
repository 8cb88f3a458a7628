import { limits } from '@iris/protocol';
import { type Static, Type } from 'typebox';

const ms = (value: number, description: string) =>
  Type.Integer({ default: value, minimum: 1, description: `milliseconds: ${description}` });
const bytes = (value: number, description: string) => Type.Integer({ default: value, minimum: 1, description: `bytes: ${description}` });
const count = (value: number, description: string) => Type.Integer({ default: value, minimum: 1, description });

/** How an edge behaves. What is counted in milliseconds here is kept to a tick (250 ms). */
export const EdgeConfig = Type.Object({
  hello_ms: ms(limits.hello_ms, 'from opening a socket to its first frame'),
  sockets_before_hello: count(200, 'sockets of one address that have not said hello'),
  hello_failures_per_minute: count(10, 'failed hellos of one address a minute'),
  hello_failures_burst: count(20, 'failed hellos of one address at once'),
  hellos_per_second: count(500, 'hellos of devices a second that are passed on; others wait their turn'),
  hellos_burst: count(1_000, 'hellos of devices at once that are passed on'),
  agent_hellos_per_second: count(50, 'hellos of agents a second that are passed on; others wait their turn'),
  agent_hellos_burst: count(100, 'hellos of agents at once that are passed on'),
  hello_wait_ms: ms(15_000, 'a hello waits for its turn; who would wait longer is told at once to come back'),
  waiting_frames: count(1_000, 'frames a device may send behind hello before it is answered'),
  waiting_bytes: bytes(1024 * 1024, 'of such frames'),

  ping_ms: ms(5_000, 'between WebSocket pings of one socket'),
  lag_ms: ms(1_000, 'without an answer to a ping until updates wait'),
  slow_rtt_ms: ms(200, 'from a ping to its answer above which a device gets one update at a time'),
  silent_ms: ms(20_000, 'without a sign of life until a socket is dropped'),
  push_ping_ms: ms(250, 'from a frame worth a push to the ping that asks whether it has arrived'),
  confirm_ms: ms(1_000, 'between writes of watermarks'),
  refresh_ms: ms(5_000, 'between saying again which devices this edge holds; well below the lease'),

  accept_ms: ms(1_000, 'until a session instance has said that it has a batch'),
  resend_ms: ms(1_000, 'without an answer until a request is sent again'),
  in_flight_bytes: bytes(8 * 1024 * 1024, 'of unanswered requests of one device'),
  agent_in_flight_bytes: bytes(64 * 1024 * 1024, 'of unanswered requests of one agent link; over it the link is closed'),

  head_check_ms: ms(2_000, 'between looks whether a last frame was lost'),
  waiting_repair_bytes: bytes(4 * 1024 * 1024, 'of frames of one tenant that wait for a gap to be repaired'),
  high_mark_bytes: bytes(256 * 1024, 'in a socket buffer above which the connection reads from the outbox instead'),
  lag_mark_bytes: bytes(32 * 1024, 'in a socket buffer above which updates wait, and the newest replaces the one waiting'),
  low_mark_bytes: bytes(64 * 1024, 'in a socket buffer below which it reads the next page'),
  hard_mark_bytes: bytes(8 * 1024 * 1024, 'in a socket buffer above which the connection is dropped'),
  page_frames: count(100, 'frames of one page of the outbox'),
  page_bytes: bytes(256 * 1024, 'of one page of the outbox'),
  page_reads: count(64, 'pages that are read at once'),

  upload_end_ms: ms(30_000, 'from the end of an upload to its answer'),
  upload_pending_bytes: bytes(32 * 1024 * 1024, 'of one upload that wait for the disk; over it the upload fails'),
  uploads_pending_bytes: bytes(
    512 * 1024 * 1024,
    'of memory in which all uploads together wait for the disk; from half of it on those fail that have more than their share; less where an edge has less',
  ),
  upload_frame_bytes: bytes(16 * 1024, 'in a frame of an upload from which on it does not count against the rate of frames'),

  media_secret: Type.Optional(
    Type.String({
      minLength: 16,
      secret: true,
      description: 'signs links to files; the same for all edges. Without it there are no links',
    }),
  ),
  media_link_ms: ms(900_000, 'a link to a file is good for, at least'),
  public_url: Type.Optional(Type.String({ description: 'https://… in front of links to files; without it they have a path only' })),

  update_ms: ms(100, 'between two updates of one running message'),
  update_bytes_per_second: bytes(64 * 1024, 'a second of updates of one running message'),
});
export type EdgeConfig = Static<typeof EdgeConfig>;

/** Every value as it is when nothing is set. */
export const defaultEdgeConfig: EdgeConfig = Object.freeze(
  Object.fromEntries(
    Object.entries(EdgeConfig.properties).flatMap(([name, schema]) => {
      const { default: value } = schema as { default?: unknown };
      return value === undefined ? [] : [[name, value]];
    }),
  ),
) as unknown as EdgeConfig;
