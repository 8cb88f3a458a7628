import type { ObservableGauge } from '@opentelemetry/api';
import { PrometheusExporter, PrometheusSerializer } from '@opentelemetry/exporter-prometheus';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import { type CounterName, type GaugeName, type HistogramName, metrics } from './attributes.js';
import type { Clock } from './clock.js';
import type { Attributes, Counter, Histogram, Meter } from './meter.js';

export interface Telemetry {
  readonly meter: Meter;
  /** Everything measured so far, in Prometheus's text format. */
  scrape(): Promise<string>;
  close(): Promise<void>;
}

/** Beyond so many label sets of one metric, further ones count as `other`: a mistake in labels must not cost the process its memory. */
const seriesMax = 500;

/**
 * Metrics through OpenTelemetry. Counters are added up here and handed over at each scrape: they stand on the path of every
 * frame, and a map look-up is what that path can afford.
 * @param instance one process may hold several parts; the name tells them apart in traces and logs, metrics are summed
 */
export function telemetry({ service, instance }: { service: string; instance: string }): Telemetry {
  const exporter = new PrometheusExporter({ preventServerStart: true });
  // `target_info` would show the command line and paths of the machine.
  const serializer = new PrometheusSerializer(undefined, false, undefined, true, true);
  const provider = new MeterProvider({
    resource: resourceFromAttributes({ 'service.name': service, 'service.instance.id': instance }),
    readers: [exporter],
  });
  const source = provider.getMeter('iris');
  const counters = new Map<CounterName, Counter>();
  const histograms = new Map<HistogramName, Histogram>();
  const gauges = new Map<GaugeName, { readers: Set<() => number>; gauge: ObservableGauge }>();

  const counter = (name: CounterName): Counter => {
    const { description, attributes: labels } = metrics[name];
    const sums = new Map<string, { attributes: Attributes; sum: number }>();
    source.createObservableCounter(name, { description }).addCallback((result) => {
      for (const { attributes, sum } of sums.values()) result.observe(sum, attributes);
    });
    return {
      add(count, attributes) {
        const key = keyOf(labels, attributes);
        let one = sums.get(key);
        if (one === undefined) {
          const full = sums.size >= seriesMax;
          const label = full ? 'other' : key;
          one = sums.get(label) ?? { attributes: full ? sameLabels(labels, 'other') : only(labels, attributes), sum: 0 };
          sums.set(label, one);
        }
        one.sum += count;
      },
    };
  };
  const histogram = (name: HistogramName): Histogram => {
    const { description, buckets, attributes: labels } = metrics[name];
    const made = source.createHistogram(name, { description, advice: { explicitBucketBoundaries: [...buckets] } });
    return { record: (value, attributes) => made.record(value, only(labels, attributes)) };
  };

  return {
    meter: {
      counter: (name) => once(counters, name, counter),
      histogram: (name) => once(histograms, name, histogram),
      gauge(name, read) {
        const { readers } = once(gauges, name, () => {
          const readers = new Set<() => number>();
          const gauge = source.createObservableGauge(name, { description: metrics[name].description });
          gauge.addCallback((result) => result.observe([...readers].reduce((sum, one) => sum + one(), 0)));
          return { readers, gauge };
        });
        readers.add(read);
        return () => void readers.delete(read);
      },
    },
    async scrape() {
      const { resourceMetrics, errors } = await exporter.collect();
      if (errors.length > 0) throw new AggregateError(errors, 'metrics could not be collected');
      return serializer.serialize(resourceMetrics);
    },
    close: () => provider.shutdown(),
  };
}

/** What a process measures about itself. Returns a function that ends it. */
export function measureProcess({ meter, clock }: { meter: Meter; clock: Clock }): () => void {
  const every_ms = 1_000;
  const delay = meter.histogram('iris_runtime_loop_delay_seconds');
  let due = clock.now() + every_ms;
  const timer = clock.every(every_ms, () => {
    const now = clock.now();
    delay.record(Math.max(0, now - due) / 1_000);
    due = now + every_ms;
  });
  const ends = [
    meter.gauge('iris_runtime_resident_bytes', () => process.memoryUsage.rss()),
    meter.gauge('iris_runtime_heap_bytes', () => process.memoryUsage().heapUsed),
    meter.gauge('iris_runtime_buffer_bytes', () => process.memoryUsage().arrayBuffers),
  ];
  return () => {
    timer.cancel();
    for (const end of ends) end();
  };
}

function once<K, V>(from: Map<K, V>, key: K, make: (key: K) => V): V {
  const found = from.get(key);
  if (found !== undefined) return found;
  const made = make(key);
  from.set(key, made);
  return made;
}

const keyOf = (labels: readonly string[], attributes: Attributes | undefined): string => {
  if (labels.length === 0 || attributes === undefined) return '';
  if (labels.length === 1) return `${attributes[labels[0]!] ?? ''}`;
  return labels.map((label) => attributes[label] ?? '').join('\n');
};
/** Labels that the metric's row does not name are left out. */
const only = (labels: readonly string[], attributes: Attributes | undefined): Attributes =>
  Object.fromEntries(labels.flatMap((label) => (attributes?.[label] === undefined ? [] : [[label, attributes[label]]])));
const sameLabels = (labels: readonly string[], value: string): Attributes => Object.fromEntries(labels.map((label) => [label, value]));
