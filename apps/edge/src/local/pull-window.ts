/**
 * How much of a pull may be on its way, and when more may follow. The network takes far more than any buffer here shows, and what waits in
 * it is in front of every frame that comes after. So pings go between the chunks: one before the first tells how long the way is when
 * nothing is on it, and each pong tells when what stood before its ping was through, and so how fast the line is. A chunk goes when the line
 * is about to be free: no more than one, or what the line takes in a moment that nobody notices, is ever in front of another frame. Of what
 * goes at once, eight pings tell as much as one behind each chunk, and cost both sides less.
 */
export interface PullWindow {
  /** The number of the ping that goes before all. */
  begin(now: number): number;
  /** Milliseconds until another chunk may go, infinitely many when a pong has to come first. */
  wait(now: number): number;
  /** A chunk goes. @returns the number of the ping that goes behind it, if one does */
  sent(bytes: number, now: number): number | undefined;
  /** A ping came back, and with it all before it. */
  arrived(number: number, now: number): void;
}

const most_bytes = 8 * 1024 * 1024;
/** What nobody notices, whatever is waiting. */
const unnoticed_ms = 15;
/** Clocks tell whole milliseconds: the pace of less than so many is no more than a hint. */
const telling_ms = 10;

export function pullWindow(chunk_bytes: number): PullWindow {
  /** Of an empty line, there and back. */
  let way_ms = Number.POSITIVE_INFINITY;
  /** Bytes that the line takes in a millisecond; 0 when nothing is known. */
  let pace = 0;
  let known = false;
  let [measured_bytes, measured_ms] = [0, 0];
  /** When the line will have taken all that was sent. */
  let free_at = 0;
  let heard_at = Number.NEGATIVE_INFINITY;
  let count = 0;
  let inFlight = 0;
  let unmarked = 0;
  const pings: { readonly number: number; readonly bytes: number; readonly at: number }[] = [];

  const unnoticed_bytes = () => Math.max(0, unnoticed_ms * pace - chunk_bytes);
  /** What the line itself holds, in whole chunks, and what nobody notices. */
  const room = () => (pace === 0 ? 0 : Math.min(most_bytes, Math.ceil((pace * way_ms) / chunk_bytes) * chunk_bytes + unnoticed_bytes()));
  const wait = (now: number): number => {
    // Nothing would open it: what is on its way has no ping behind it, since there was room when it went.
    if (inFlight === 0 || pings.length === 0) return 0;
    if (inFlight > room()) return Number.POSITIVE_INFINITY;
    return Math.max(0, Math.ceil(free_at - now - unnoticed_bytes() / pace));
  };
  const mark = (now: number): number => {
    pings.push({ number: ++count, bytes: unmarked, at: now });
    unmarked = 0;
    return count;
  };
  /** It took `ms` for so many bytes, one behind the other. */
  function measure(bytes: number, ms: number): void {
    measured_bytes += bytes;
    measured_ms += ms;
    const seen = measured_bytes / Math.max(1, measured_ms);
    if (measured_ms >= telling_ms) {
      pace = known ? (pace + seen) / 2 : seen;
      known = true;
      [measured_bytes, measured_ms] = [0, 0];
    } else if (!known) pace = Math.max(pace, seen);
  }

  return {
    begin: mark,
    wait,
    sent(bytes, now) {
      inFlight += bytes;
      unmarked += bytes;
      if (pace > 0) free_at = Math.max(free_at, now) + bytes / pace;
      // What has to be waited for is always marked, or nothing would open it again.
      return unmarked + chunk_bytes <= room() / 8 && wait(now) === 0 ? undefined : mark(now);
    },
    arrived(number, now) {
      while (pings.length > 0 && pings[0]!.number <= number) {
        const { at, bytes, number: n } = pings.shift()!;
        inFlight -= bytes;
        if (n !== number) {
          measured_bytes += bytes;
          continue;
        }
        way_ms = Math.min(way_ms, now - at);
        if (bytes > 0) measure(bytes, Math.max(0, now - Math.max(heard_at, at + way_ms)));
        heard_at = now;
        if (pace > 0) free_at = now - way_ms + inFlight / pace;
      }
    },
  };
}
