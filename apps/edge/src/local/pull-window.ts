/**
 * How much of a pull may be on its way. The network takes far more than any buffer here shows, and what it holds is in front of every
 * frame that comes after: so pings go between the chunks, and a pong tells how long the way was. As long as it is no longer than the
 * way of an empty line, more may be sent at once; when more than a chunk would be waiting somewhere, less. Of a wide window, eight pings
 * tell as much as one behind each chunk, and cost both sides less.
 */
export interface PullWindow {
  /** Whether another chunk may go now. */
  readonly open: boolean;
  /** A chunk goes. @returns the number of the ping that goes behind it, if one does */
  sent(bytes: number, now: number): number | undefined;
  /** A ping came back, and with it all before it. */
  arrived(number: number, now: number): void;
}

const least_bytes = 128 * 1024;
const most_bytes = 8 * 1024 * 1024;
/** What nobody notices, whatever is waiting. */
const unnoticed_ms = 15;

export function pullWindow(chunk_bytes: number): PullWindow {
  let window = least_bytes;
  let shortest_ms = Number.POSITIVE_INFINITY;
  let count = 0;
  let inFlight = 0;
  let unmarked = 0;
  const pings: { readonly number: number; readonly bytes: number; readonly at: number; readonly before: number }[] = [];
  const isOpen = () => inFlight === 0 || inFlight + chunk_bytes <= window;
  return {
    get open() {
      return isOpen();
    },
    sent(bytes, now) {
      inFlight += bytes;
      unmarked += bytes;
      // What closes the window is always marked, or nothing would open it again.
      if (unmarked + chunk_bytes <= window / 8 && isOpen()) return undefined;
      pings.push({ number: ++count, bytes: unmarked, at: now, before: inFlight });
      unmarked = 0;
      return count;
    },
    arrived(number, now) {
      while (pings.length > 0 && pings[0]!.number <= number) {
        const { at, bytes, before, number: n } = pings.shift()!;
        inFlight -= bytes;
        if (n !== number) continue;
        const took = Math.max(0, now - at);
        shortest_ms = Math.min(shortest_ms, took);
        const waiting = took - shortest_ms <= unnoticed_ms ? 0 : before * (1 - shortest_ms / took);
        if (waiting > chunk_bytes) window = Math.max(least_bytes, window - bytes);
        else if (before > window / 2) window = Math.min(most_bytes, window + bytes);
      }
    },
  };
}
