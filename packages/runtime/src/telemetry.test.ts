import { describe, expect, test } from '@jest/globals';
import { metrics } from './attributes.js';
import { measureProcess, telemetry } from './telemetry.js';
import { manualClock, recordingMeter } from './testing.js';

const make = () => telemetry({ service: 'edge', instance: 'e1' });
const lines = async (one: ReturnType<typeof make>) => (await one.scrape()).split('\n');

describe('telemetry', () => {
  test('counters add up per label set, from every holder of the name', async () => {
    const one = make();
    one.meter.counter('iris_edge_frames_in_total').add(2, { peer: 'device', type: 'ping' });
    one.meter.counter('iris_edge_frames_in_total').add(3, { type: 'ping', peer: 'device' });
    one.meter.counter('iris_edge_frames_in_total').add(1, { peer: 'agent', type: 'ping' });
    const out = await lines(one);
    expect(out).toContain('iris_edge_frames_in_total{peer="device",type="ping"} 5');
    expect(out).toContain('iris_edge_frames_in_total{peer="agent",type="ping"} 1');
    await one.close();
  });

  test('labels that a metric does not name are left out; too many label sets become `other`', async () => {
    const one = make();
    const counter = one.meter.counter('iris_edge_errors_total');
    for (let i = 0; i < 2_000; i++) counter.add(1, { code: `c${i}`, tenant_id: `t${i}` });
    const out = (await lines(one)).filter((line) => line.startsWith('iris_edge_errors_total{'));
    expect(out).toHaveLength(501);
    expect(out).toContain('iris_edge_errors_total{code="other"} 1500');
    expect(out.join()).not.toMatch(/tenant_id/);
    await one.close();
  });

  test('histograms have the buckets of their row', async () => {
    const one = make();
    one.meter.histogram('iris_edge_request_seconds').record(0.003, { type: 'history' });
    const out = await lines(one);
    expect(out).toContain('iris_edge_request_seconds_bucket{type="history",le="0.0025"} 0');
    expect(out).toContain('iris_edge_request_seconds_bucket{type="history",le="0.005"} 1');
    expect(out).toContain('iris_edge_request_seconds_count{type="history"} 1');
    await one.close();
  });

  test('gauges are read at the scrape, summed over their readers, and end', async () => {
    const one = make();
    let open = 3;
    one.meter.gauge('iris_edge_connections', () => open);
    const end = one.meter.gauge('iris_edge_connections', () => 10);
    expect(await lines(one)).toContain('iris_edge_connections 13');
    open = 4;
    end();
    expect(await lines(one)).toContain('iris_edge_connections 4');
    await one.close();
  });

  test('nothing of the machine is told', async () => {
    const one = make();
    one.meter.counter('iris_jobs_done_total').add(1, { job: 'upkeep.repair', outcome: 'done' });
    expect(await one.scrape()).not.toMatch(/target_info|otel_scope/);
    await one.close();
  });

  test('names follow one rule', () => {
    for (const [name, row] of Object.entries(metrics)) {
      expect(name).toMatch(/^iris_[a-z_]+$/);
      expect(name.endsWith('_total')).toBe(row.kind === 'counter');
    }
  });
});

test('measureProcess: how late timers are, and memory', async () => {
  const clock = manualClock();
  const meter = recordingMeter();
  const end = measureProcess({ meter, clock });
  await clock.advance(3_000);
  expect(meter.recorded('iris_runtime_loop_delay_seconds')).toEqual([0, 0, 0]);
  expect(meter.total('iris_runtime_resident_bytes')).toBeGreaterThan(1_000_000);
  end();
  expect(clock.timers).toBe(0);
  expect(meter.total('iris_runtime_resident_bytes')).toBe(0);
});
