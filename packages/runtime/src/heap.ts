/** What is due first comes out first; of equals, what was put in first. */
export interface Heap<T> {
  push(item: T): void;
  pop(): T | undefined;
  readonly first: T | undefined;
  readonly size: number;
  /** Drop every item that does not pass. */
  keep(passes: (item: T) => boolean): void;
}

export function heap<T>(before: (a: T, b: T) => boolean): Heap<T> {
  let items: T[] = [];
  const push = (item: T) => {
    let i = items.push(item) - 1;
    while (i > 0) {
      const up = (i - 1) >> 1;
      if (!before(item, items[up]!)) break;
      items[i] = items[up]!;
      i = up;
    }
    items[i] = item;
  };
  return {
    push,
    pop() {
      const first = items[0];
      const last = items.pop();
      if (last === undefined || items.length === 0) return first;
      let i = 0;
      for (;;) {
        let down = 2 * i + 1;
        if (down >= items.length) break;
        if (down + 1 < items.length && before(items[down + 1]!, items[down]!)) down++;
        if (!before(items[down]!, last)) break;
        items[i] = items[down]!;
        i = down;
      }
      items[i] = last;
      return first;
    },
    get first() {
      return items[0];
    },
    get size() {
      return items.length;
    },
    keep(passes) {
      const kept = items.filter(passes);
      items = [];
      for (const item of kept) push(item);
    },
  };
}
