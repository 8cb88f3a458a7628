import type { Clock, Timer } from './clock.js';
import { closing, type Down, type DownOf, parseDown } from './frame.js';
import type { Log } from './log.js';
import type { Outlet } from './outlet.js';
import { type Connect, type LinkSocket, subprotocol } from './socket.js';

export interface AttemptEvents {
  /** The payload of `hello`, at the moment it is sent. */
  hello(): object;
  greeted(ack: DownOf<'hello.ack'>['payload']): void;
  /** The gateway has our frames up to `seq`. */
  acked(seq: number): void;
  /** After `hello.ack`, all but keepalive. */
  frame(frame: Down): void;
  /** Milliseconds the gateway's clock is ahead. */
  skew(ms: number): void;
  /** Once, unless it was retired. */
  lost(code: number, reason: string): void;
}

/** One try at a connection, from dialling to its end. */
export interface Attempt extends Outlet {
  /** When `hello.ack` came; undefined before. */
  readonly greeted_at: number | undefined;
  buffered(): number;
  /** Close it in peace; nothing more is heard of it. */
  retire(): void;
  /** Take the peer for dead. */
  drop(reason: string): void;
}

/** From dialling to `hello.ack`. */
const greet_ms = 15_000;
/** Heartbeats without a sound after which the peer is taken for dead. */
const silent_beats = 2.5;

export function attempt(options: {
  readonly url: string;
  readonly token: string;
  readonly connect: Connect;
  readonly clock: Clock;
  readonly log: Log;
  readonly events: AttemptEvents;
}): Attempt {
  const { clock, log, events } = options;
  let socket: LinkSocket | undefined;
  let over = false;
  let greeted_at: number | undefined;
  let heard_at = clock.now();
  let timer: Timer = clock.after(greet_ms, () => drop('no hello.ack'));

  const write = (type: string, payload: object) => socket?.send(JSON.stringify({ v: 1, type, payload }));
  const ping = () => write('ping', { ts: clock.now() });
  const lost = (code: number, reason: string) => {
    if (over) return;
    over = true;
    timer.cancel();
    events.lost(code, reason);
  };
  const drop = (reason: string) => {
    if (over) return;
    socket?.terminate();
    lost(closing.lost, reason);
  };

  function heard(frame: Down): void {
    if (typeof frame.ack === 'number') events.acked(frame.ack);
    switch (frame.type) {
      case 'hello.ack':
        if (greeted_at === undefined) greeted(frame.payload);
        return;
      case 'ping':
        write('pong', frame.payload);
        return;
      case 'pong':
        if (typeof frame.payload.server_ts === 'number') events.skew(frame.payload.server_ts - clock.now());
        return;
      default:
        if (greeted_at !== undefined) events.frame(frame);
        else if (frame.type === 'error') log.error('agent_link.refused', { code: frame.payload.code, message: frame.payload.message });
    }
  }

  function greeted(ack: DownOf<'hello.ack'>['payload']): void {
    greeted_at = clock.now();
    timer.cancel();
    timer = clock.every(ack.heartbeat_ms, () => {
      if (clock.now() - heard_at > silent_beats * ack.heartbeat_ms) drop('silent');
      else ping();
    });
    events.greeted(ack);
    ping();
  }

  socket = options.connect(
    options.url,
    { token: options.token, subprotocol },
    {
      open() {
        if (!over) write('hello', events.hello());
      },
      message(text) {
        if (over) return;
        heard_at = clock.now();
        const frame = parseDown(text);
        if (frame) heard(frame);
        else log.warn('agent_link.not_a_frame');
      },
      closed: lost,
    },
  );

  return {
    send: (text) => socket?.send(text),
    get greeted_at() {
      return greeted_at;
    },
    buffered: () => socket?.buffered() ?? 0,
    retire() {
      over = true;
      timer.cancel();
      socket?.close(closing.normal, '');
    },
    drop,
  };
}
