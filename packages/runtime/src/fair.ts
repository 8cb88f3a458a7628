import { heap } from './heap.js';

/**
 * Who is next, where many wait for the same thing. Each key has a line of its own, and what is given out is shared among the keys that
 * wait in proportion to their weights, whatever each has put in (start-time fair queueing): a key that was away is next at once, and gains
 * nothing by having been away.
 */
export interface FairLine<K, T> {
  /** @param weight above 0 @param cost above 0: how much of what is shared it takes */
  push(key: K, share: { readonly weight: number; readonly cost: number }, item: T): void;
  /** The next of a key that is not held. */
  next(): T | undefined;
  /** It was given out past the line, since there was enough for all. */
  count(key: K, share: { readonly weight: number; readonly cost: number }): void;
  /** Until {@link release} nothing of this key is next. */
  hold(key: K): void;
  release(key: K): void;
  /** Items that wait, of keys that are held too. */
  readonly size: number;
}

interface Flow<K, T> {
  readonly key: K;
  readonly waiting: { readonly weight: number; readonly cost: number; readonly item: T }[];
  /** Where it stands on the common scale: what it was given, by its weight. */
  finish: number;
  /** Where its first item stands, from the moment it could be next. */
  start: number;
  serial: number;
  queued: boolean;
  held: boolean;
}

/** Keys without anything that waits are remembered up to here, since they may come back before their turn. */
const idleMax = 1_000;

export function fairLine<K, T>(): FairLine<K, T> {
  const flows = new Map<K, Flow<K, T>>();
  /** Where the scale stands: at the start of what was given out last. */
  let reached = 0;
  let serial = 0;
  let size = 0;

  const line = heap<Flow<K, T>>((one, other) => one.start < other.start || (one.start === other.start && one.serial < other.serial));
  const queue = (flow: Flow<K, T>) => {
    if (flow.queued || flow.held || flow.waiting.length === 0) return;
    flow.queued = true;
    flow.start = Math.max(reached, flow.finish);
    flow.serial = ++serial;
    line.push(flow);
  };
  const flowOf = (key: K): Flow<K, T> => {
    let flow = flows.get(key);
    if (flow === undefined) {
      flow = { key, waiting: [], finish: 0, start: 0, serial: 0, queued: false, held: false };
      flows.set(key, flow);
    }
    return flow;
  };
  let tidyAt = idleMax;
  const tidy = () => {
    if (flows.size <= tidyAt) return;
    for (const [key, flow] of flows) if (flow.waiting.length === 0 && !flow.held && flow.finish <= reached) flows.delete(key);
    // Those that wait cannot go: looked at again when there are twice as many, so that a look costs each of them little.
    tidyAt = Math.max(idleMax, 2 * flows.size);
  };

  return {
    push(key, { weight, cost }, item) {
      const flow = flowOf(key);
      flow.waiting.push({ weight, cost, item });
      size++;
      queue(flow);
    },
    next() {
      for (;;) {
        const flow = line.pop();
        if (flow === undefined) return undefined;
        flow.queued = false;
        if (flow.held) continue;
        const { weight, cost, item } = flow.waiting.shift()!;
        size--;
        // One that was held may have come into line long ago.
        reached = Math.max(reached, flow.start);
        flow.finish = flow.start + cost / weight;
        queue(flow);
        tidy();
        return item;
      }
    },
    count(key, { weight, cost }) {
      if (size === 0) return;
      const flow = flowOf(key);
      const start = Math.max(reached, flow.finish);
      // The scale moves with whatever is given out: else who took what was free would owe it all to whoever comes next.
      reached = start;
      flow.finish = start + cost / weight;
    },
    hold(key) {
      flowOf(key).held = true;
    },
    release(key) {
      const flow = flows.get(key);
      if (flow === undefined) return;
      flow.held = false;
      queue(flow);
    },
    get size() {
      return size;
    },
  };
}

/** A number of places for work, shared as {@link fairLine} does. */
export interface FairPlaces<K> {
  /** Begins `work` at once when there is room, else when its turn comes. Settles as `work` does. */
  run<R>(key: K, weight: number, work: () => Promise<R>): Promise<R>;
  readonly waiting: number;
}

/**
 * @param options.places work under way at once
 * @param options.most of one key, so that none fills all places, however long its work takes
 */
export function fairPlaces<K>(options: { readonly places: number; readonly most: number }): FairPlaces<K> {
  const line = fairLine<K, () => void>();
  const taken = new Map<K, number>();
  let running = 0;
  const enter = (key: K) => {
    running++;
    const mine = (taken.get(key) ?? 0) + 1;
    taken.set(key, mine);
    if (mine >= options.most) line.hold(key);
  };
  const leave = (key: K) => {
    running--;
    const mine = taken.get(key)! - 1;
    if (mine === 0) taken.delete(key);
    else taken.set(key, mine);
    if (mine === options.most - 1) line.release(key);
    while (running < options.places) {
      const go = line.next();
      if (go === undefined) return;
      go();
    }
  };
  return {
    async run(key, weight, work) {
      if (running >= options.places || (taken.get(key) ?? 0) >= options.most)
        await new Promise<void>((resolve) =>
          line.push(key, { weight, cost: 1 }, () => {
            enter(key);
            resolve();
          }),
        );
      else {
        line.count(key, { weight, cost: 1 });
        enter(key);
      }
      try {
        return await work();
      } finally {
        leave(key);
      }
    },
    get waiting() {
      return line.size;
    },
  };
}
