import { rowOf } from '@iris/protocol';
import { type AnyFrame, faultOf, type Match, matcher, type Payload, showFrame } from './frames.js';
import { type Patience, type Recording, record } from './record.js';
import type { Limit } from './test-device.js';
import { type TestTurn, type TurnHandle, testTurn } from './test-turn.js';
import type { Dial, Wire } from './wire.js';

export interface TestAgentOptions {
  readonly dial: Dial;
  readonly patience: Patience;
  /** In `hello`; leave it out when `dial` sends the header. */
  readonly token?: string;
  readonly install_id?: string;
  readonly caps?: Record<string, unknown>;
  /** Takes every turn that is offered; without it a test takes them with {@link TestAgent.turn}. */
  readonly script?: (turn: TestTurn, agent: TestAgent) => void;
}

export interface TestAgent {
  readonly received: Recording<AnyFrame>;
  /** All frames of its links, both ways, with the time. */
  readonly story: readonly { readonly at: number; readonly way: 'in' | 'out'; readonly frame: AnyFrame }[];
  /** Durable frames of ours that the gateway has not acked. */
  readonly unacked: readonly AnyFrame[];
  /** Every turn ever offered, by id. */
  readonly turns: ReadonlyMap<string, TestTurn>;
  /** What the gateway did that the link does not allow. Must stay empty. */
  readonly faults: readonly string[];
  readonly connected: boolean;
  readonly epoch: number;
  readonly install_id: string;
  readonly boot_id: string;

  /** Dial and say hello; resolves with `hello.ack` (and what it sets off is sent) or `error`. */
  connect(dial?: Dial, hello?: Payload): Promise<AnyFrame>;
  /** The next turn offered that no test has taken yet. */
  turn(limit?: Limit & { accept?: boolean }): Promise<TestTurn>;
  next(match: Match, limit?: Limit): Promise<AnyFrame>;
  /** A frame outside any turn. What the frame table calls durable gets its `seq` and is kept until acked. */
  say(
    type: string,
    payload: Payload,
    options?: { durable?: boolean; chat_id?: string; thread_id?: string | null; turn_id?: string; id?: string },
  ): void;
  request(type: string, payload: Payload, options?: Limit & { chat_id?: string; thread_id?: string | null }): Promise<AnyFrame>;
  raw(data: string): void;
  /** Whether what comes is acked. Unacked frames count as not stored: a restart forgets them. */
  autoAck(on: boolean): void;
  closed(limit?: Limit): Promise<{ code: number; reason: string }>;
  close(code?: number): void;
  cut(options?: { silent?: boolean }): void;
  pause(): void;
  resume(): void;
  /**
   * The process ends and starts again: a new `boot_id`. What was on its disk stays: both sequences and the frames not
   * acked. Open turns are gone, unless `turns` says that it can go on with them. `install`: a new installation, with nothing.
   */
  restart(options?: { install?: boolean; turns?: boolean }): void;
}

let installs = 0;

/** A scripted agent on the raw link. Its own implementation of seq, ack and resume, stricter than any agent need be. */
export function testAgent(options: TestAgentOptions): TestAgent {
  const { patience } = options;
  const received = record<AnyFrame>(patience, showFrame);
  const story: { at: number; way: 'in' | 'out'; frame: AnyFrame }[] = [];
  const faults: string[] = [];
  const handles = new Map<string, TurnHandle>();
  const turns = new Map<string, TestTurn>();
  let offered: TestTurn[] = [];
  let install_id = options.install_id ?? `install_${++installs}`;
  let boots = 1;
  let ids = 0;
  let requests = 0;
  let wire: Wire | undefined;
  let closed: { code: number; reason: string } | undefined;
  /** hello.ack has come: traffic may flow. */
  let linked = false;
  let epoch = 0;
  let outSeq = 0;
  let acked = 0;
  let unacked: AnyFrame[] = [];
  let inSeq = 0;
  let inAcked = 0;
  let ack = true;
  let steered: AnyFrame[] = [];

  const boot_id = () => `${install_id}_boot_${boots}`;
  const put = (frame: AnyFrame) => {
    const acking = ack && linked;
    if (acking && wire) inAcked = inSeq;
    if (wire) story.push({ at: patience.now(), way: 'out', frame });
    wire?.send(JSON.stringify({ v: 1, ...frame, ...(acking ? { ack: inSeq } : {}) }));
  };
  const say = (frame: AnyFrame, durable = rowOf(frame.type)?.agent_up?.durable === true) => {
    if (durable) {
      const numbered = { ...frame, seq: ++outSeq };
      unacked.push(numbered);
      if (linked) put(numbered);
    } else if (linked) put(frame);
  };
  const onAck = (seq: number) => {
    if (seq > outSeq) faults.push(`ack ${seq} of frames never sent (${outSeq})`);
    acked = Math.max(acked, seq);
    unacked = unacked.filter((frame) => frame.seq! > acked);
  };

  const onLinked = (frame: AnyFrame) => {
    const { last_seq, epoch: given, turns: held } = frame.payload as { last_seq: number; epoch: number; turns: { turn_id: string }[] };
    if (given <= epoch) faults.push(`epoch ${given} after ${epoch}`);
    epoch = given;
    if (last_seq < acked) faults.push(`hello.ack.last_seq ${last_seq}, but ${acked} was acked`);
    onAck(last_seq);
    linked = true;
    for (const waiting of unacked) put(waiting);
    const known = new Set(held.map(({ turn_id }) => turn_id));
    for (const [turn_id, handle] of handles) {
      if (!handle.open) continue;
      if (known.has(turn_id)) say({ type: 'turn.snapshot', turn_id, ...lane(handle.turn), payload: handle.snapshot() });
      else handle.abandon();
    }
    // An answer has no `seq`: whether the last link brought it nobody says.
    for (const answer of steered) put(answer);
  };
  const lane = ({ chat_id, thread_id }: TestTurn) => ({ chat_id, thread_id });

  /** When `agent.stop` came, by turn. One that does not follow it has lost its turn 10 s after it was asked for. */
  const stops = new Map<string, number>();
  const isGivenUp = (turn_id: string) => (stops.get(turn_id) ?? Number.POSITIVE_INFINITY) <= patience.now() - 9_000;

  const onTurnStart = (frame: AnyFrame) => {
    const known = handles.get(frame.turn_id!);
    if (known) {
      if (known.state !== 'offered') faults.push(`turn.start again for ${frame.turn_id}, which is ${known.state}`);
      known.offered(frame.payload);
      return;
    }
    if (frame.payload.kind === 'chat') {
      for (const { turn, open } of handles.values())
        if (
          open &&
          !isGivenUp(turn.turn_id) &&
          turn.chat_id === frame.chat_id &&
          turn.thread_id === (frame.thread_id ?? null) &&
          turn.offer.kind === 'chat'
        )
          faults.push(`${frame.turn_id} starts while ${turn.turn_id} runs in its lane`);
    }
    const handle = testTurn(frame, say, (kind) => `${boot_id()}_${kind}_${++ids}`);
    handles.set(frame.turn_id!, handle);
    turns.set(frame.turn_id!, handle.turn);
    if (options.script) options.script(handle.turn, self);
    else offered.push(handle.turn);
  };
  const onDurable = (frame: AnyFrame) => {
    const handle = frame.turn_id === undefined ? undefined : handles.get(frame.turn_id);
    if (frame.type === 'turn.start') onTurnStart(frame);
    else if (frame.type === 'agent.stop') {
      stops.set(frame.turn_id!, patience.now());
      handle?.stopRequested();
    } else if (frame.type === 'agent.steer') {
      if (handle?.open) handle.steered(String(frame.payload.text));
      if (frame.id === undefined) return;
      const answer = { type: 'agent.steer', id: frame.id, payload: { accepted: handle?.open === true } };
      steered.push(answer);
      put(answer);
    }
  };
  const hear = (data: string) => {
    const frame = JSON.parse(data) as AnyFrame;
    story.push({ at: patience.now(), way: 'in', frame });
    const fault = faultOf(frame, 'agent_down');
    if (fault !== undefined) faults.push(`${fault}: ${data.slice(0, 200)}`);
    if (frame.ack !== undefined) onAck(frame.ack);
    if (frame.type === 'hello.ack') onLinked(frame);
    if (frame.type === 'ping') put({ type: 'pong', payload: frame.payload });
    if (frame.seq !== undefined) {
      if (!linked) faults.push(`${frame.type} before hello.ack`);
      // Sent again after a reconnect: seen already.
      if (frame.seq <= inSeq) return;
      if (frame.seq !== inSeq + 1) faults.push(`seq ${frame.seq} after ${inSeq}`);
      inSeq = frame.seq;
      onDurable(frame);
      if (ack) put({ type: 'ack', payload: {} });
    }
    received.add(frame);
  };

  const self: TestAgent = {
    received,
    story,
    get unacked() {
      return unacked;
    },
    turns,
    faults,
    get connected() {
      return linked && closed === undefined;
    },
    get epoch() {
      return epoch;
    },
    get install_id() {
      return install_id;
    },
    get boot_id() {
      return boot_id();
    },
    async connect(dial = options.dial, hello = {}) {
      wire?.cut();
      wire = undefined;
      linked = false;
      const from = received.all.length;
      const ended: { code?: { code: number; reason: string } } = {};
      let mine: Wire | undefined;
      mine = await dial({
        message(data) {
          if (mine === wire && typeof data === 'string') hear(data);
        },
        ping: (data) => mine?.pong(data),
        closed(code, reason) {
          ended.code = { code, reason };
          if (mine !== wire) return;
          closed = ended.code;
          linked = false;
          wire = undefined;
          patience.stir();
        },
      });
      wire = mine;
      closed = ended.code;
      put({
        type: 'hello',
        payload: {
          ...(options.token === undefined ? {} : { token: options.token }),
          agent: 'demo',
          install_id,
          boot_id: boot_id(),
          caps: { stream: true, reasoning: true, tools: true, steer: true, stop: true, delete: true, resume: true, ...options.caps },
          last_seq: inSeq,
          open_turns: [...handles].filter(([, handle]) => handle.open).map(([turn_id]) => turn_id),
          ...hello,
        },
      });
      return patience.wait(
        () => {
          const answer = received.all.slice(from).find(({ type }) => type === 'hello.ack' || type === 'error');
          if (answer === undefined && ended.code) throw new Error(`agent link closed with ${ended.code.code} before hello.ack`);
          return answer;
        },
        { describe: () => 'no answer to the agent’s hello' },
      );
    },
    async turn({ within_ms, accept = true } = {}) {
      const turn = await patience.wait(() => offered.shift(), { within_ms, describe: () => 'no turn was offered to the agent' });
      if (accept) turn.accept();
      return turn;
    },
    next(match, { within_ms } = {}) {
      return received.next(matcher(match), { within_ms, what: typeof match === 'function' ? match.toString() : String(match) });
    },
    say: (type, payload, { durable, ...more } = {}) => say({ type, ...more, payload }, durable),
    request(type, payload, { within_ms, ...more } = {}) {
      const id = `q${++requests}`;
      const from = received.all.length;
      say({ type, id, ...more, payload });
      return patience.wait(() => received.all.slice(from).find((frame) => frame.id === id), {
        within_ms,
        describe: () => `no answer to the agent’s ${type}`,
      });
    },
    raw: (data) => wire?.send(data),
    autoAck: (on) => {
      ack = on;
    },
    closed: ({ within_ms } = {}) => patience.wait(() => closed, { within_ms, describe: () => 'the agent is still connected' }),
    close: (code) => wire?.close(code),
    cut: (how) => wire?.cut(how),
    pause: () => wire?.pause(),
    resume: () => wire?.resume(),
    restart({ install = false, turns: keep = false } = {}) {
      wire?.cut();
      wire = undefined;
      linked = false;
      boots++;
      inSeq = inAcked;
      // What it had not said that it takes is offered again.
      for (const [turn_id, handle] of handles)
        if (handle.state === 'offered') {
          handle.abandon();
          handles.delete(turn_id);
        }
      offered = [];
      if (!keep) {
        for (const handle of handles.values()) handle.abandon();
        for (const [turn_id, handle] of handles)
          if (handle.state === 'abandoned' && handle.turn.running.size === 0) handles.delete(turn_id);
        steered = [];
      }
      if (install) {
        install_id = `${install_id}+`;
        outSeq = acked = inSeq = inAcked = 0;
        unacked = [];
        handles.clear();
      }
    },
  };
  return self;
}
