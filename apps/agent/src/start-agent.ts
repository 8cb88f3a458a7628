import { type Connect, type LinkEnd, type LinkStatus, runAgent } from '@iris/agent-link';
import { type Clock, type Log, systemClock } from '@iris/runtime';
import type { Backend } from './backend.js';
import { demoBackend } from './backends/demo/demo.js';

/** Backends there are. */
export const backends = ['demo'] as const;
export type BackendName = (typeof backends)[number];

export interface StartAgentOptions {
  /** `wss://<gateway>/agent`. */
  readonly gateway: string;
  readonly token: string;
  readonly backend: BackendName;
  /** A folder of this agent's own; without it, what was not delivered is lost with the process. */
  readonly spool?: string;
  readonly log: Log;
  /** What `hello` calls it; default: the backend's name. */
  readonly name?: string;
  /** Milliseconds between two chunks of a streamed answer (demo); default 30. */
  readonly pace_ms?: number;
  readonly onStatus?: (status: LinkStatus) => void;
  /** For tests: time, chance and the network. */
  readonly clock?: Clock;
  readonly random?: () => number;
  readonly connect?: Connect;
}

export interface RunningAgent {
  readonly online: boolean;
  /** Running turns end as interrupted, and what was said is delivered, within a few seconds. */
  stop(): Promise<LinkEnd>;
  /** Resolves when it is over, by `stop` or because the gateway said so. Never rejects. */
  readonly stopped: Promise<LinkEnd>;
}

/** Attach a backend to a gateway. @throws TypeError when `gateway` is no address; Error when the spool is in use */
export function startAgent(options: StartAgentOptions): RunningAgent {
  const { clock = systemClock, log, spool, connect, random, onStatus } = options;
  const backend: Backend = demoBackend({ clock, pace_ms: options.pace_ms ?? 30 });
  const agent = runAgent({
    gateway: options.gateway,
    token: options.token,
    name: options.name ?? backend.name,
    ...(backend.version === undefined ? {} : { version: backend.version }),
    ...(backend.commands === undefined ? {} : { commands: backend.commands }),
    ...(backend.onDeleted === undefined ? {} : { onDeleted: backend.onDeleted }),
    onTurn: backend.onTurn,
    clock,
    log,
    ...(spool === undefined ? {} : { spool }),
    ...(connect === undefined ? {} : { connect }),
    ...(random === undefined ? {} : { random }),
    ...(onStatus === undefined ? {} : { onStatus }),
  });
  backend.attached?.(agent);
  void agent.stopped.then(() => backend.close?.());
  return {
    get online() {
      return agent.online;
    },
    stop: () => agent.stop(),
    stopped: agent.stopped,
  };
}
