import { type Agent, type Command, type LinkEnd, runAgent, type Turn } from '@iris/agent-link';
import { closeCodes } from '@iris/protocol';
import type { Clock, Log, Timer } from '@iris/runtime';
import { commands } from './commands.js';
import { descriptor, inside, type RelayAction, type RelayEvent, relayFrames, relayText } from './contract.js';
import { type LaneWork, laneWork } from './lane-work.js';
import { memoryConnect, type Opens } from './memory-connect.js';
import { outbound } from './outbound.js';

/** Where a relay's frames go: the socket of a Hermes. */
export interface RelayEnd {
  send(text: string): void;
  close(code: number, reason: string): void;
}

/** One Hermes on the relay: an agent on the SDK, inside the edge, that passes on what both sides say. */
export interface Bridge {
  /** A socket of this Hermes; an older one is closed. */
  attach(end: RelayEnd): void;
  /** It is gone. Until it is back, turns wait. */
  detach(end: RelayEnd): void;
  heard(end: RelayEnd, text: string): void;
  stop(): void;
  /** The gateway has let its agent in: the token is good. */
  readonly proven: boolean;
}

export interface BridgeOptions {
  readonly token: string;
  readonly opens: Opens;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  /** It is proven now. */
  readonly welcomed: () => void;
  /** It is over: nobody came back, or the gateway said so. */
  readonly ended: () => void;
}

/** Milliseconds a Hermes may be away before its agent is no longer attached; the gateway waits as long. */
const away_ms = 30_000;

export function bridge({ token, opens, clock, random, log, welcomed, ended }: BridgeOptions): Bridge {
  let end: RelayEnd | undefined;
  let greeted = false;
  let idle = false;
  let returns = false;
  let away: Timer | undefined;
  let over = false;
  let proven = false;
  const lanes = new Map<string, LaneWork>();
  /** Events that Hermes has not taken yet, by the id under which it says so. */
  const untaken = new Map<string, RelayEvent>();
  let buffers = 0;

  const say = (frame: object) => end?.send(relayText(frame));
  const ready = () => end !== undefined && greeted && !idle;
  const deliver = (bufferId: string, event: RelayEvent) => say({ type: 'inbound', event, bufferId });

  /** A message to Hermes, said again on its next socket until it has taken it. */
  const inbound = (
    lane: { chat_id: string; thread_id: string | null },
    text: string,
    more: Partial<RelayEvent> & { name?: string } = {},
  ) => {
    const bufferId = `${++buffers}`;
    const { name, ...fields } = more;
    const message_id = fields.message_id ?? `iris-${bufferId}`;
    const event: RelayEvent = {
      text,
      message_type: 'text',
      ...fields,
      message_id,
      source: {
        // Whatever platforms it says it stands for: with this one Hermes answers on this socket, and its sessions are named after it.
        platform: 'relay',
        chat_id: inside(lane.chat_id),
        chat_type: 'dm',
        chat_name: name ?? inside(lane.chat_id),
        // One tenant is one person, whichever device they write from.
        user_id: 'iris',
        user_name: 'Iris',
        ...(lane.thread_id === null ? {} : { thread_id: lane.thread_id }),
        message_id,
      },
    };
    untaken.set(bufferId, event);
    if (ready()) deliver(bufferId, event);
  };

  const workOf = (lane: { chat_id: string; thread_id: string | null }): LaneWork => {
    const key = `${lane.chat_id}\n${lane.thread_id ?? ''}`;
    let work = lanes.get(key);
    if (work === undefined) {
      work = laneWork({
        clock,
        inbound: (text, more) => inbound(lane, text, more),
        // Not the words `/stop`: Hermes 0.19 would answer them before it reads on, and wait for what it does not read.
        interrupt() {
          const chat_id = inside(lane.chat_id);
          const session_key = ['agent:main:relay:dm', chat_id, ...(lane.thread_id === null ? [] : [lane.thread_id])].join(':');
          say({ type: 'interrupt_inbound', session_key, chat_id });
        },
      });
      lanes.set(key, work);
    }
    return work;
  };

  const agent: Agent = runAgent({
    gateway: 'ws://relay/agent',
    token,
    name: 'hermes-relay',
    commands: commands.map((command): Command => ({ ...command, run: (turn) => workOf(turn).run(turn) })),
    caps: { stream: true, tools: false, reasoning: false, pickers: ['approval', 'clarify', 'confirm', 'choice'], steer: false, cron: true },
    onTurn: (turn: Turn) => workOf(turn).run(turn),
    onStatus({ state }) {
      if (state !== 'online' || proven) return;
      proven = true;
      welcomed();
    },
    connect: memoryConnect(opens, clock, (code, reason) => end?.close(code, reason)),
    clock,
    random,
    log,
  });
  void agent.stopped.then((how: LinkEnd) => {
    // A refused token may be good a moment later, before any handshake; after one, 4401 ends it for Hermes, as it should.
    if (how.reason !== 'stopped') end?.close(closeCodes.auth, how.reason);
    over = true;
    away?.cancel();
    ended();
  });
  const act = outbound({ agent, workOf, inbound });

  async function answer(requestId: string, action: RelayAction): Promise<void> {
    const asking = end;
    let result: object;
    try {
      result = { success: true, ...(await act(action)) };
    } catch (error) {
      result = { success: false, error: error instanceof Error ? error.message : String(error) };
    }
    if (end === asking) say({ type: 'outbound_result', requestId, result });
  }

  return {
    attach(next) {
      const before = end;
      end = next;
      greeted = false;
      idle = false;
      away?.cancel();
      before?.close(closeCodes.restarting, 'a newer socket took over');
    },
    detach(gone) {
      if (end !== gone) return;
      end = undefined;
      // Nobody waits for whoever was never let in.
      away = clock.after(proven ? away_ms : 0, () => void agent.stop({ flush_ms: 1_000 }));
    },
    heard(from, text) {
      if (from !== end || over) return;
      let frames: ReturnType<typeof relayFrames>;
      try {
        frames = relayFrames(text);
      } catch (error) {
        log.warn('relay.malformed', { error });
        return from.close(closeCodes.protocol, 'not a frame of the relay contract');
      }
      for (const frame of frames) {
        switch (frame.type) {
          case 'hello': {
            const first = !greeted;
            greeted = true;
            say({ type: 'descriptor', descriptor: descriptor(frame.platform || 'relay') });
            if (!first) break;
            if (returns) for (const work of lanes.values()) work.returned();
            returns = true;
            for (const [bufferId, event] of untaken) deliver(bufferId, event);
            break;
          }
          case 'inbound_ack':
            if (frame.bufferId !== undefined) untaken.delete(frame.bufferId);
            break;
          case 'going_idle':
            idle = true;
            say({ type: 'going_idle_ack' });
            break;
          case 'outbound':
            if (frame.requestId !== undefined && frame.action !== undefined) void answer(frame.requestId, frame.action);
            break;
        }
      }
    },
    stop: () => void agent.stop({ flush_ms: 0 }),
    get proven() {
      return proven;
    },
  };
}
