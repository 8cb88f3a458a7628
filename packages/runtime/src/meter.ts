import type { CounterName, GaugeName, HistogramName } from './attributes.js';

/** Labels of one measurement: few names, few values each. Never an id of a tenant, chat, device or message. */
export type Attributes = Readonly<Record<string, string | number | boolean>>;

export interface Counter {
  add(count: number, attributes?: Attributes): void;
}
export interface Histogram {
  record(value: number, attributes?: Attributes): void;
}

/** What parts measure with. Every name is a row of `attributes.ts`. Asking twice for a name gives the same instrument. */
export interface Meter {
  counter(name: CounterName): Counter;
  histogram(name: HistogramName): Histogram;
  /** `read` is called at each scrape. Several readers of one name are added up; the returned function takes this one away. */
  gauge(name: GaugeName, read: () => number): () => void;
}

export const noMeter: Meter = {
  counter: () => ({ add() {} }),
  histogram: () => ({ record() {} }),
  gauge: () => () => {},
};
