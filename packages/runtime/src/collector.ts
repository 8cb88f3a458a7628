import { setFlagsFromString } from 'node:v8';

/**
 * Let the heap grow to two and a half times of what is in use before all of it is collected; V8 lets one that grows slowly grow by a fifth. For a process
 * that others wait for: one collection of 50 MB stands in the way of its own work for about 20 ms and takes the other processors from everybody
 * else's meanwhile, and with some hundred messages a second that came every 5 s, which was all of what was slow in the slowest of a hundred sends.
 * Costs memory, within the limit that V8 has for the heap (`--max-old-space-size`).
 */
export function collectRarely(): void {
  setFlagsFromString('--heap-growing-percent=150');
}
