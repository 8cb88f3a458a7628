/** Durations are seconds, as Prometheus wants them; these reach from an in-process hop to a request's deadline. */
const seconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30] as const;
const sizes = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000] as const;

const counter = <D extends string>(description: D, attributes: readonly string[] = []) =>
  ({ kind: 'counter', description, attributes }) as const;
const gauge = <D extends string>(description: D) => ({ kind: 'gauge', description, attributes: [] }) as const;
const histogram = <D extends string>(description: D, buckets: readonly number[], attributes: readonly string[] = []) =>
  ({ kind: 'histogram', description, buckets, attributes }) as const;

/**
 * Every metric there is: dashboards, alerts and the code name them from here. A new one is one row.
 * `attributes` are the only labels it may carry.
 */
export const metrics = {
  iris_edge_connections: gauge('device sockets past `hello`'),
  iris_edge_agent_links: gauge('agent sockets past `hello`'),
  iris_edge_greeting: gauge('sockets before `hello`'),
  iris_edge_catching_up: gauge('connections that read from the outbox'),
  iris_edge_frames_in_total: counter('frames received', ['peer', 'type']),
  iris_edge_frames_out_total: counter('frames handed to sockets', ['class']),
  iris_edge_errors_total: counter('`error` frames sent', ['code']),
  iris_edge_closed_total: counter('connections closed', ['code']),
  iris_edge_request_seconds: histogram('request to answer, as the edge sees it', seconds, ['type']),
  iris_edge_resends_total: counter('requests asked again', ['why']),
  iris_edge_gaps_total: counter('feed gaps repaired from the outbox', ['found_by']),
  iris_edge_rate_limited_total: counter('frames and hellos refused by a rate', ['what']),
  iris_media_bytes_total: counter('bytes of files that devices sent and got', ['direction']),
  iris_session_handled_total: counter('requests handled', ['type', 'outcome']),
  iris_session_handle_seconds: histogram('handling one request', seconds, ['type']),
  iris_session_emit_seconds: histogram('store, outbox and publish of one tick', seconds),
  iris_session_emit_frames: histogram('frames in one tick', sizes),
  iris_session_turns_open: gauge('turns sent or running'),
  iris_session_turns_silent: gauge('running turns whose agent has said nothing for too long, and waits for nobody'),
  iris_session_turns_silent_total: counter('silences of running turns', ['reason']),
  iris_session_turns_ended_total: counter('turns ended', ['outcome']),
  iris_session_seeds_total: counter('sequences seeded after the outbox lost its place', ['why']),
  iris_outbox_append_seconds: histogram('one append call', seconds),
  iris_outbox_read_seconds: histogram('one page read', seconds),
  iris_bus_messages_total: counter('bus messages', ['direction']),
  iris_bus_bytes_total: counter('bus bytes', ['direction']),
  iris_bus_slow_consumer_total: counter('times a process was slow at taking what the bus brought it', ['why']),
  iris_jobs_done_total: counter('jobs finished', ['job', 'outcome']),
  iris_worker_repaired_total: counter('messages appended after a crash'),
  iris_push_decided_total: counter('decisions about a device and a frame', ['decision']),
  iris_push_sent_total: counter('requests to providers', ['provider', 'outcome']),
  iris_push_withdrawn_total: counter('notifications taken back', ['provider', 'outcome']),
  iris_push_lag_seconds: histogram('frame to the acceptance of its push', seconds, ['provider']),
  iris_worker_expired_messages_total: counter("messages past a tenant's age"),
  iris_worker_expired_keys_total: counter('idempotency keys, and pickers that are over, that no repeat asks for any more'),
  iris_runtime_loop_delay_seconds: histogram('how late the event loop runs its timers', seconds),
  iris_runtime_resident_bytes: gauge('memory of the process'),
  iris_runtime_heap_bytes: gauge('JavaScript heap in use'),
  iris_runtime_buffer_bytes: gauge('bytes in buffers outside the heap'),
} as const;

export type MetricName = keyof typeof metrics;
type OfKind<K extends string> = { [N in MetricName]: (typeof metrics)[N]['kind'] extends K ? N : never }[MetricName];
export type CounterName = OfKind<'counter'>;
export type GaugeName = OfKind<'gauge'>;
export type HistogramName = OfKind<'histogram'>;
