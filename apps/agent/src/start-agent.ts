import { type Connect, type LinkEnd, type LinkStatus, runAgent } from '@iris/agent-link';
import { type Clock, type Log, systemClock, systemRandom } from '@iris/runtime';
import type { Backend } from './backend.js';
import { demoBackend } from './backends/demo/demo.js';
import { hermesBackend } from './backends/hermes/hermes.js';
import { openaiBackend } from './backends/openai/openai.js';
import type { ModelSettings } from './config.js';
import { type Http, reachingHttp } from './http/http.js';

/** Backends there are. */
export const backends = ['demo', 'openai', 'hermes'] as const;
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
  /** Where the model is; everything but `demo` needs it. */
  readonly url?: string;
  /** Its key. */
  readonly key?: string;
  /** How it is asked, and where it may be; default: those of `AgentConfig`. */
  readonly model?: Partial<ModelSettings>;
  readonly onStatus?: (status: LinkStatus) => void;
  /** For tests: time, chance and the network. */
  readonly clock?: Clock;
  readonly random?: () => number;
  readonly connect?: Connect;
  readonly http?: Http;
}

export interface RunningAgent {
  readonly online: boolean;
  /** Running turns end as interrupted, and what was said is delivered, within a few seconds. */
  stop(): Promise<LinkEnd>;
  /** Resolves when it is over, by `stop` or because the gateway said so. Never rejects. */
  readonly stopped: Promise<LinkEnd>;
}

/** Attach a backend to a gateway. @throws TypeError when an address is none; SpoolInUse when another process has the spool */
export function startAgent(options: StartAgentOptions): RunningAgent {
  const { clock = systemClock, log, spool, connect, random, onStatus } = options;
  const backend = backendOf(options);
  const agent = runAgent({
    gateway: options.gateway,
    token: options.token,
    name: options.name ?? backend.name,
    ...(backend.version === undefined ? {} : { version: backend.version }),
    ...(backend.commands === undefined ? {} : { commands: backend.commands }),
    ...(backend.caps === undefined ? {} : { caps: backend.caps }),
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

function backendOf(options: StartAgentOptions): Backend {
  const { clock = systemClock, log, model = {}, key, random = systemRandom.unit, spool, url } = options;
  if (options.backend === 'demo') return demoBackend({ clock, pace_ms: options.pace_ms ?? 30 });
  if (url === undefined) throw new TypeError(`${options.backend} needs the address of its endpoint`);
  const outside = reachingHttp({
    private_addresses: model.private_addresses ?? true,
    hosts: model.allow_hosts ?? [],
    addresses: model.allow_addresses ?? [],
  });
  // The gateway is where its operator put it, also in a private network.
  const inside = reachingHttp({ private_addresses: true });
  const files = new URL(options.gateway.replace(/^ws/, 'http'));
  const make = options.backend === 'hermes' ? hermesBackend : openaiBackend;
  const backend = make({
    url: httpAddress(url),
    ...(key === undefined ? {} : { key }),
    http: options.http ?? outside,
    media: (address, signal) => inside(new URL(address, files).href, { signal }),
    ...(spool === undefined ? {} : { dir: spool }),
    config: {
      ...(model.agent_model === undefined ? {} : { model: model.agent_model }),
      ...(model.system_prompt === undefined ? {} : { system_prompt: model.system_prompt }),
      ...(model.context_tokens === undefined ? {} : { context_tokens: model.context_tokens }),
      history_chars: model.history_chars ?? 48_000,
      retries: model.model_retries ?? 3,
      silence_ms: model.silence_ms ?? 300_000,
    },
    clock,
    random,
    log,
  });
  return {
    ...backend,
    close() {
      backend.close?.();
      outside.close();
      inside.close();
    },
  };
}

/** @throws TypeError when it is no address of a web server */
function httpAddress(url: string): string {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed?.protocol !== 'http:' && parsed?.protocol !== 'https:') throw new TypeError(`${url} is no address (http:// or https://)`);
  if (parsed.username !== '' || parsed.password !== '') throw new TypeError('the address may not hold a name or a password: give a key');
  return url;
}
