import { type Processed, type ScriptedGateway, type ScriptedGatewayOptions, scriptedGateway } from '@iris/agent-link/testing';
import { type Log, silentLog, systemClock } from '@iris/runtime';
import { type RunningAgent, type StartAgentOptions, startAgent } from '../start-agent.js';

type HistoryMessage = { message_id: string; role: string; text: string; ts: number };

/** An agent on real HTTP, attached to a gateway in memory, on the real clock. */
export interface Attached {
  readonly gateway: ScriptedGateway;
  readonly agent: RunningAgent;
  /** The lane's past as the gateway gives it; a turn's own message is put behind it. */
  readonly past: HistoryMessage[];
  /** What the log was told, as text. */
  readonly logged: string[];
  begin(text: string, more?: Parameters<ScriptedGateway['startTurn']>[1]): string;
  /** Resolves with the first durable frame of this kind that was not given before. */
  frame<T extends Processed['type']>(
    type: T,
    fits?: (frame: Extract<Processed, { type: T }>) => boolean,
  ): Promise<Extract<Processed, { type: T }>>;
  /** Resolves when the running text of the turn is this. */
  running(text: string): Promise<void>;
  /** The end of the turn, and what was said in it. */
  ended(turn_id: string): Promise<{ outcome: string; error: string | undefined; texts: string[]; notes: string[]; frames: Processed[] }>;
  close(): Promise<void>;
}

export async function attach(
  options: Partial<StartAgentOptions> & { url?: string },
  script: Partial<ScriptedGatewayOptions> = {},
): Promise<Attached> {
  const past: HistoryMessage[] = [];
  const logged: string[] = [];
  const looks = new Set<() => void>();
  const look = () => {
    for (const one of [...looks]) one();
  };
  /** Looks again whenever something came from the agent. */
  const until = <T>(found: () => T | undefined): Promise<T> =>
    new Promise((resolve) => {
      const one = () => {
        const value = found();
        if (value === undefined) return;
        looks.delete(one);
        resolve(value);
      };
      looks.add(one);
      one();
    });
  const note = (event: string, fields?: Record<string, unknown>) => void logged.push(`${event} ${JSON.stringify(fields, errors)}`);
  const log: Log = { ...silentLog, debug: note, info: note, warn: note, error: note };
  const gateway = scriptedGateway({
    clock: systemClock,
    carry: (deliver) =>
      void setImmediate(() => {
        deliver();
        look();
      }),
    answer: (frame) => (frame.type === 'history' ? { type: 'history', payload: { messages: past, has_more: false } } : undefined),
    ...script,
  });
  const agent = startAgent({
    gateway: 'ws://127.0.0.1:9/agent',
    token: 'secret',
    backend: 'openai',
    random: () => 0,
    connect: gateway.net.connect,
    ...options,
    log,
  });
  const given = new Set<Processed>();
  const said = new Map<string, string>();
  let read = 0;
  const texts = () => {
    for (; read < gateway.passing.length; read++) {
      const frame = gateway.passing[read]!;
      if (frame.type === 'message.delta')
        said.set(frame.payload.message_id, (said.get(frame.payload.message_id) ?? '') + frame.payload.text);
    }
    return [...said.values()];
  };
  await until(() => agent.online || undefined);
  return {
    gateway,
    agent,
    past,
    logged,
    begin(text, more) {
      const turn_id = gateway.startTurn(text, more);
      past.push({ message_id: `u_${turn_id}`, role: 'user', text, ts: past.length });
      return turn_id;
    },
    frame: (type, fits = () => true) =>
      until(() => {
        const found = gateway.processed.find((frame) => frame.type === type && !given.has(frame) && fits(frame as never));
        if (found) given.add(found);
        return found as never;
      }),
    running: (text) => until(() => texts().includes(text) || undefined).then(() => {}),
    async ended(turn_id) {
      const end = await until(() => gateway.processed.find((frame) => frame.type === 'turn.end' && frame.turn_id === turn_id));
      if (end.type !== 'turn.end') throw new Error('no end');
      const frames = gateway.processed.filter((frame) => frame.turn_id === turn_id);
      return {
        outcome: end.payload.outcome,
        error: end.payload.error,
        texts: frames.flatMap((frame) => (frame.type === 'message.stop' ? [frame.payload.final_text] : [])),
        notes: frames.flatMap((frame) => (frame.type === 'message' && frame.payload.role === 'system' ? [frame.payload.text] : [])),
        frames,
      };
    },
    async close() {
      await agent.stop();
      if (gateway.faults.length > 0) throw new Error(`the agent broke the contract:\n${gateway.faults.join('\n')}`);
    },
  };
}

const errors = (_: string, value: unknown) => (value instanceof Error ? `${value.name}: ${value.message}` : value);
