import type { TemplatedApp, WebSocket } from 'uWebSockets.js';
import type { Clock } from '@iris/runtime';
import type { Opening, Socket, SocketEvents } from './socket.js';
import type { Strangers } from './strangers.js';

/** Up to this many bytes uWebSockets.js gathers what is published in one turn of the loop and writes it once per socket. */
const gatheredBelow = 16 * 1024;

export interface Entry {
  readonly opening: Opening;
  socket: UwsSocket | undefined;
  events: SocketEvents | undefined;
}

/** What happens at the end of each turn of the loop in which something was sent. */
export interface Turn {
  number: number;
  /** Something is sent: the turn's end will be noticed. */
  begin(): void;
  /** The socket has a group of its own until the turn ends. */
  gathers(socket: UwsSocket): string;
}

export function turns(clock: Clock): Turn {
  let begun = false;
  let serial = 0;
  let gathering: UwsSocket[] = [];
  const end = () => {
    begun = false;
    turn.number++;
    const done = gathering;
    gathering = [];
    for (const socket of done) socket.endGathering();
  };
  const turn: Turn = {
    number: 1,
    begin() {
      if (begun) return;
      begun = true;
      clock.soon(end);
    },
    gathers(socket) {
      gathering.push(socket);
      return `s:${++serial}`;
    },
  };
  return turn;
}

/** A class for the same reason as the edge's connections: there are tens of thousands, mostly idle. */
export class UwsSocket implements Socket {
  private ws: WebSocket<Entry> | undefined;
  private sent = 0;
  private own: string | undefined = undefined;
  private stranger = true;
  constructor(
    ws: WebSocket<Entry>,
    private readonly app: TemplatedApp,
    private readonly turn: Turn,
    private readonly strangers: Strangers,
  ) {
    strangers.came();
    this.ws = ws;
  }
  get isClosed(): boolean {
    return this.ws === undefined;
  }
  forget(): void {
    this.welcome();
    this.ws = undefined;
  }
  welcome(): void {
    if (this.stranger) this.strangers.left();
    this.stranger = false;
  }
  /**
   * Each `send` is a system call, each `publish` of a turn goes out in one per socket. So a second frame in the same turn makes
   * the socket a group of its own until the turn ends, and the order of all calls stays what it was.
   */
  send(data: Uint8Array, binary = false): void {
    const { ws, turn } = this;
    if (ws === undefined) return;
    if (data.length >= gatheredBelow) return void ws.send(data, binary);
    if (this.own === undefined) {
      if (this.sent !== turn.number) {
        turn.begin();
        this.sent = turn.number;
        return void ws.send(data, binary);
      }
      this.own = turn.gathers(this);
      ws.subscribe(this.own);
    }
    this.app.publish(this.own, data, binary);
  }
  endGathering(): void {
    if (this.own !== undefined) this.ws?.unsubscribe(this.own);
    this.own = undefined;
  }
  ping(data: Uint8Array): void {
    this.ws?.ping(data);
  }
  close(code: number, reason: string): void {
    this.ws?.end(code, reason);
  }
  terminate(): void {
    this.ws?.close();
  }
  buffered(): number {
    return this.ws?.getBufferedAmount() ?? 0;
  }
  join(group: string): void {
    this.ws?.subscribe(group);
  }
  leave(group: string): void {
    this.ws?.unsubscribe(group);
  }
  publish(group: string, data: Uint8Array): void {
    // One that is no member cannot publish by itself, and there is nobody to leave out.
    if (this.ws?.isSubscribed(group)) this.ws.publish(group, data, false);
    else this.app.publish(group, data, false);
  }
}
