import type { EdgeDeps, EdgeMeters } from './context.js';

export function metersOf({ meter }: EdgeDeps): EdgeMeters {
  return {
    frames_in: meter.counter('iris_edge_frames_in_total'),
    frames_out: meter.counter('iris_edge_frames_out_total'),
    errors: meter.counter('iris_edge_errors_total'),
    closed: meter.counter('iris_edge_closed_total'),
    limited: meter.counter('iris_edge_rate_limited_total'),
    gaps: meter.counter('iris_edge_gaps_total'),
    resends: meter.counter('iris_edge_resends_total'),
    request_seconds: meter.histogram('iris_edge_request_seconds'),
    media_bytes: meter.counter('iris_media_bytes_total'),
  };
}
