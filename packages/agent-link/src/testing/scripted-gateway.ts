import { type AgentDownFrame, type AgentUpFrame, decodeAgent, frameTable } from '@iris/protocol';
import { type MemoryNet, type MemoryNetOptions, memoryNet, type ServerEnd } from './memory-net.js';
import { type SeenTurn, turnBook } from './turn-book.js';

type Body = { readonly type: AgentDownFrame['type']; readonly payload: object };
export type Told = Body & {
  readonly seq: number;
  readonly id?: string;
  readonly turn_id?: string;
  readonly chat_id?: string;
  readonly thread_id?: string | null;
};
/** A durable frame as it was processed. */
export type Processed = AgentUpFrame & { readonly seq: number };

export interface ScriptedGatewayOptions {
  readonly clock: { now(): number };
  readonly carry: MemoryNetOptions['carry'];
  readonly upFirst?: () => boolean;
  readonly heartbeat_ms?: number;
  /** Ack only every so many frames; the rest is acked with the next. Default: each. */
  readonly ackEvery?: () => number;
  /** Called for each durable frame, once, when it is processed. */
  readonly onProcessed?: (frame: Processed) => void;
  /** Answers a request; default: something plausible. */
  readonly answer?: (frame: AgentUpFrame) => Body | undefined;
}

/**
 * The gateway's side of the agent link for one agent, as strict as the contract allows: every breach is a line in
 * {@link ScriptedGateway.faults}. What it has processed survives every cut, as the real one's database would.
 */
export interface ScriptedGateway {
  readonly net: MemoryNet;
  /** Empty when the agent kept to the contract. */
  readonly faults: readonly string[];
  readonly processed: readonly Processed[];
  readonly hellos: readonly Extract<AgentUpFrame, { type: 'hello' }>['payload'][];
  /** Frames that are not durable, as they came. */
  readonly passing: readonly AgentUpFrame[];
  readonly turns: ReadonlyMap<string, SeenTurn>;
  readonly linked: boolean;
  /** Frames of ours that the agent has not acked. */
  readonly unacked: number;
  startTurn(
    text: string,
    more?: {
      turn_id?: string;
      chat_id?: string;
      thread_id?: string;
      kind?: 'chat' | 'command';
      auto?: boolean;
      attempt?: number;
      media?: readonly object[];
    },
  ): string;
  /** A durable frame. */
  tell(frame: Body & { turn_id?: string; id?: string; chat_id?: string; thread_id?: string }): number;
  /** A frame that is not durable; false when no link is up. */
  say(frame: Body): boolean;
  stop(turn_id: string): void;
  /** Returns the `seq` of the frame. */
  steer(turn_id: string, text: string): number;
  /** How the steer with this `seq` was answered. */
  steered(seq: number): boolean | undefined;
  /** Steers that were never answered. */
  readonly unanswered: readonly number[];
  /** Lose the next frame behind the connection's back, as a broker may. */
  loseNext(): void;
  /** Take a frame back that was not acked: its number is never sent again. */
  withdraw(seq: number): void;
  close(code: number): void;
  /** As after the loss of its database: it knows nothing of the agent, nor of any turn. `links` have been there since. */
  forget(links?: number): void;
  /** Refuse the next dials with this close code; undefined: take them again. */
  refuse: number | undefined;
}

export function scriptedGateway(options: ScriptedGatewayOptions): ScriptedGateway {
  const faults: string[] = [];
  const processed: Processed[] = [];
  const texts = new Map<number, string>();
  const passing: AgentUpFrame[] = [];
  const hellos: Extract<AgentUpFrame, { type: 'hello' }>['payload'][] = [];
  const fault = (text: string) => void faults.push(text);
  const book = turnBook(fault);
  let install_id: string | undefined;
  let in_seq = 0;
  let out: Told[] = [];
  let out_seq = 0;
  let acked = 0;
  let epoch = 0;
  let losing = false;
  let link: { end: ServerEnd; greeted: boolean; unackedCount: number; sent_seq: number } | undefined;
  const steers = new Map<number, { turn_id: string; accepted?: boolean }>();
  let turnCount = 0;

  const write = (frame: object) => link?.end.send(JSON.stringify({ v: 1, ack: in_seq, ...frame }));
  const send = (frame: Told) => {
    if (!link?.greeted) return;
    if (losing) {
      losing = false;
      return;
    }
    link.sent_seq = frame.seq;
    write(frame);
  };

  function hello(frame: Extract<AgentUpFrame, { type: 'hello' }>, to: NonNullable<typeof link>) {
    const { payload } = frame;
    hellos.push(payload);
    if (install_id === payload.install_id) {
      if (payload.last_seq < acked) fault(`hello.last_seq ${payload.last_seq} is below what was acked, ${acked}`);
      if (payload.last_seq > out_seq) fault(`hello.last_seq ${payload.last_seq} was never sent`);
      takeAck(payload.last_seq, true);
      for (const turn_id of payload.open_turns ?? []) if (!book.turns.has(turn_id)) fault(`open turn ${turn_id} is unknown`);
    } else {
      // A new installation: both sequences start over; what the old one had not acked goes to the new one.
      install_id = payload.install_id;
      in_seq = 0;
      acked = 0;
      texts.clear();
      out = out.map((told, i) => ({ ...told, seq: i + 1 }));
      out_seq = out.length;
    }
    to.greeted = true;
    book.resumed();
    write({
      type: 'hello.ack',
      payload: {
        link_id: `l${epoch + 1}`,
        epoch: ++epoch,
        last_seq: in_seq,
        heartbeat_ms: options.heartbeat_ms ?? 20_000,
        turns: [...book.turns.values()]
          .filter((turn) => turn.outcome === undefined)
          .map(({ turn_id, chat_id, thread_id, accepted }) => ({ turn_id, chat_id, thread_id, state: accepted ? 'running' : 'sent' })),
        channels: [{ chat_id: 'android:default', name: 'Default', kind: 'default', is_default: true }],
      },
    });
    for (const told of out) send(told);
  }

  /** @param said_hello the answer to a steer may have been lost with the last link, and comes after `hello.ack` */
  function takeAck(seq: number, said_hello = false) {
    if (seq < acked) return fault(`ack ${seq} after ${acked}`);
    for (const told of out) {
      if (told.seq > seq || said_hello) break;
      if (told.type === 'agent.steer' && steers.get(told.seq)?.accepted === undefined) fault(`steer ${told.seq} acked without an answer`);
    }
    acked = seq;
    out = out.filter((told) => told.seq > seq);
  }

  function durable(frame: AgentUpFrame, seq: number, text: string) {
    const bare = text.replace(/"ack":\d+,/, '');
    if (seq <= in_seq) {
      if (texts.get(seq) !== bare) fault(`seq ${seq} came again as another frame`);
      return ackMaybe();
    }
    if (seq !== in_seq + 1) fault(`seq ${seq} after ${in_seq}`);
    in_seq = seq;
    texts.set(seq, bare);
    processed.push(frame as Processed);
    book.kept(frame);
    options.onProcessed?.(frame as Processed);
    if (frame.id !== undefined) answer(frame);
    ackMaybe();
  }

  function ackMaybe() {
    if (!link) return;
    link.unackedCount++;
    if (link.unackedCount < (options.ackEvery?.() ?? 1)) return;
    link.unackedCount = 0;
    write({ type: 'ack', payload: {} });
  }

  function answer(frame: AgentUpFrame) {
    const id = String(frame.id);
    const given = options.answer?.(frame);
    if (given) return given.type in durableTypes ? void gateway.tell({ ...given, id }) : write({ ...given, id });
    switch (frame.type) {
      case 'channel.create':
        gateway.tell({ type: 'channel.created', id, payload: { chat_id: 'android:chan_1', kind: 'channel', ...frame.payload } });
        return;
      case 'channel.rename':
        gateway.tell({ type: 'channel.renamed', id, payload: { chat_id: frame.chat_id ?? '', name: frame.payload.name } });
        return;
      case 'history':
        return write({ type: 'history', id, payload: { messages: [], has_more: false } });
      case 'search':
        return write({ type: 'search.results', id, payload: { query: frame.payload.query, scope: 'all', hits: [] } });
      case 'media.request':
        return write({ type: 'error', id, payload: { code: 'unsupported', message: 'media is off' } });
    }
  }

  function message(text: string, from: NonNullable<typeof link>) {
    if (from !== link) return;
    const decoded = decodeAgent(text);
    if (decoded.kind !== 'frame') return fault(`${decoded.kind}: ${decoded.message}: ${text.slice(0, 200)}`);
    if (Buffer.byteLength(text) > 1024 * 1024) fault(`${decoded.frame.type} is over 1 MiB`);
    const { frame } = decoded;
    if (!from.greeted) {
      if (frame.type === 'hello') hello(frame, from);
      else fault(`${frame.type} before hello`);
      return;
    }
    // The answer of a steer travels with its ack, or before it.
    if (frame.type === 'agent.steer') steerAnswered(frame);
    if (frame.ack !== undefined) {
      if (frame.ack > from.sent_seq && frame.ack > acked) fault(`ack ${frame.ack} of what was not sent`);
      takeAck(frame.ack);
    }
    if (frame.seq !== undefined) return durable(frame, frame.seq, text);
    if (frame.type === 'ping') return write({ type: 'pong', payload: { ...frame.payload, server_ts: options.clock.now() } });
    if (frame.type === 'hello') return fault('hello twice');
    passing.push(frame);
    book.passed(frame);
    if (frame.id !== undefined && frame.type !== 'agent.steer' && frame.type !== 'ack') answer(frame);
  }

  function steerAnswered(frame: Extract<AgentUpFrame, { type: 'agent.steer' }>) {
    const steer = steers.get(Number(frame.id));
    if (!steer) return fault(`answer to an unknown steer ${String(frame.id)}`);
    if (steer.accepted !== undefined && steer.accepted !== frame.payload.accepted) fault(`steer ${String(frame.id)} answered both ways`);
    steer.accepted = frame.payload.accepted;
  }

  const net = memoryNet({
    carry: options.carry,
    ...(options.upFirst ? { upFirst: options.upFirst } : {}),
    accept(end) {
      if (gateway.refuse !== undefined) return { refuse: gateway.refuse };
      const mine: NonNullable<typeof link> = { end, greeted: false, unackedCount: 0, sent_seq: 0 };
      const before = link;
      link = mine;
      // The newest link acts, the older one is told.
      before?.end.close(4409, 'replaced');
      return {
        message: (text) => message(text, mine),
        closed: () => {
          if (link === mine) link = undefined;
        },
      };
    },
  });

  const gateway: ScriptedGateway = {
    net,
    faults,
    processed,
    hellos,
    passing,
    turns: book.turns,
    get linked() {
      return link?.greeted === true;
    },
    get unacked() {
      return out.length;
    },
    startTurn(
      text,
      { turn_id = `tn_${++turnCount}`, chat_id = 'android:default', thread_id, kind = 'chat', auto = false, attempt = 1, media } = {},
    ) {
      book.sent(turn_id, chat_id, thread_id ?? null);
      gateway.tell({
        type: 'turn.start',
        turn_id,
        chat_id,
        ...(thread_id === undefined ? {} : { thread_id }),
        payload: {
          message: { message_id: `u_${turn_id}`, text, ts: options.clock.now(), ...(media === undefined ? {} : { media }) },
          kind,
          channel: { name: 'Default', kind: thread_id === undefined ? 'default' : 'thread', auto },
          attempt,
        },
      });
      return turn_id;
    },
    tell(frame) {
      const told: Told = { thread_id: null, ...frame, seq: ++out_seq };
      out.push(told);
      send(told);
      return told.seq;
    },
    say(frame) {
      if (!link?.greeted) return false;
      write(frame);
      return true;
    },
    stop: (turn_id) => void gateway.tell({ type: 'agent.stop', turn_id, payload: {} }),
    steer(turn_id, text) {
      const seq = out_seq + 1;
      steers.set(seq, { turn_id });
      return gateway.tell({ type: 'agent.steer', turn_id, id: String(seq), payload: { text, message_id: `s_${seq}` } });
    },
    get unanswered() {
      return [...steers].flatMap(([seq, { accepted }]) => (accepted === undefined ? [seq] : []));
    },
    steered: (seq) => steers.get(seq)?.accepted,
    loseNext() {
      losing = true;
    },
    withdraw(seq) {
      out = out.filter((told) => told.seq !== seq);
    },
    forget(links = 0) {
      install_id = undefined;
      in_seq = 0;
      out = [];
      out_seq = 0;
      acked = 0;
      epoch = links;
      texts.clear();
      steers.clear();
      book.clear();
      processed.length = 0;
    },
    close: (code) => link?.end.close(code, ''),
    refuse: undefined,
  };
  return gateway;
}

const durableTypes = Object.fromEntries(
  Object.entries(frameTable).flatMap(([type, row]) => ('agent_down' in row && row.agent_down.durable ? [[type, true]] : [])),
);
