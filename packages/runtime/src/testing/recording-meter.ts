import type { MetricName } from '../attributes.js';
import type { Attributes, Meter } from '../meter.js';

export interface RecordingMeter extends Meter {
  /** Sum of a counter or of a gauge's readers, or how often a histogram recorded; over all attributes when none are given. */
  total(name: MetricName, attributes?: Attributes): number;
  /** What a histogram recorded, in order. */
  recorded(name: MetricName): readonly number[];
}

/** A meter whose numbers a test can read. */
export function recordingMeter(): RecordingMeter {
  const marks = new Map<MetricName, { value: number; attributes: Attributes }[]>();
  const readers = new Map<MetricName, Set<() => number>>();
  const list = <T>(from: Map<MetricName, T>, name: MetricName, empty: () => T): T => {
    const found = from.get(name) ?? empty();
    from.set(name, found);
    return found;
  };
  const mark = (name: MetricName, value: number, attributes: Attributes = {}) => list(marks, name, () => []).push({ value, attributes });
  const matches = (one: Attributes, wanted: Attributes) => Object.entries(wanted).every(([key, value]) => one[key] === value);
  return {
    counter: (name) => ({ add: (count, attributes) => void mark(name, count, attributes) }),
    histogram: (name) => ({ record: (value, attributes) => void mark(name, value, attributes) }),
    gauge(name, read) {
      const all = list(readers, name, () => new Set());
      all.add(read);
      return () => void all.delete(read);
    },
    total(name, attributes = {}) {
      const found = (marks.get(name) ?? []).filter((one) => matches(one.attributes, attributes));
      if (name.endsWith('_total')) return found.reduce((sum, one) => sum + one.value, 0);
      return found.length + [...(readers.get(name) ?? [])].reduce((sum, read) => sum + read(), 0);
    },
    recorded: (name) => (marks.get(name) ?? []).map((one) => one.value),
  };
}
