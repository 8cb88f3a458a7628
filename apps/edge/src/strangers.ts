/** Sockets that have not said hello. */
export interface Strangers {
  came(): void;
  /** It has said hello, or is gone. */
  left(): void;
  readonly size: number;
  readonly full: boolean;
}

/**
 * Of those who come at once, so many may send messages that are larger than the protocol allows, and be told so (1009). A message is held until it is
 * whole, so what strangers can make an edge hold is `largeAtOnce` × 8 MiB and 256 KiB for each of the others: 1.3 GiB if 4,096 devices' sockets
 * come at once and send all they may, as much again by the agents' door and by the relay's (1 MiB each, and a quarter as many), and nothing of it for longer than they have for their hello.
 */
export const largeAtOnce = 32;

export function strangers(most: number): Strangers {
  let size = 0;
  return {
    came: () => void size++,
    left: () => void size--,
    get size() {
      return size;
    },
    get full() {
      return size >= most;
    },
  };
}
