import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { SpoolInUse } from '@iris/agent-link';
import type { Clock, Log } from '@iris/runtime';
import { type Static, Type } from 'typebox';
import { Compile } from 'typebox/compile';
import type { ModelSettings } from './config.js';
import { backends, type RunningAgent, type StartAgentOptions, startAgent } from './start-agent.js';

const Text = (maxLength: number) => Type.Optional(Type.String({ minLength: 1, maxLength }));
/** One tenant's agent, as the tenant may choose it. Where a model may be is not among it: that is the operator's to say. */
export const TenantAgent = Type.Object(
  {
    agent_token: Type.String({ minLength: 1, maxLength: 512 }),
    backend: Type.Enum([...backends]),
    url: Text(2_048),
    key: Text(4_096),
    name: Text(64),
    model: Text(256),
    system_prompt: Text(64_000),
    context_tokens: Type.Optional(Type.Integer({ minimum: 1 })),
    history_chars: Type.Optional(Type.Integer({ minimum: 0, maximum: 4_000_000 })),
  },
  { additionalProperties: false },
);
export type TenantAgent = Static<typeof TenantAgent>;
const list = Compile(Type.Array(TenantAgent, { maxItems: 100_000 }));

/** The list of tenants' agents in a file. @throws Error that names the entry and the field; never a token or a key */
export function tenantAgents(text: string): TenantAgent[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error('it is not JSON');
  }
  if (!list.Check(value)) {
    const fault = [...list.Errors(value)][0];
    throw new Error(`${fault?.instancePath === '' ? 'the whole' : `entry ${fault?.instancePath.slice(1)}`}: ${fault?.message}`);
  }
  const seen = new Set<string>();
  for (const [i, { agent_token, backend, url }] of value.entries()) {
    if (seen.has(agent_token)) throw new Error(`entry ${i}: its token stands before`);
    if (backend !== 'demo' && url === undefined) throw new Error(`entry ${i}/url: ${backend} needs the address of its endpoint`);
    seen.add(agent_token);
  }
  return value;
}

/** The agents of many tenants in one process. */
export interface TenantAgents {
  /**
   * Serve these from now on. Who stands there unchanged is left alone; who is new or changed begins (anew), and who was shut out,
   * but less and less often; who is gone is stopped. One whose address is none is left out, and said in the log. Who was replaced by another process is that one's;
   * one whose spool another process has begins when that process has left it or is dead.
   */
  serve(agents: readonly TenantAgent[]): Promise<void>;
  /** Whether another process has taken this one over. */
  replaced(agent: TenantAgent): boolean;
  /** The other process is gone: the next list begins it anew. */
  reclaim(agent: TenantAgent): void;
  readonly size: number;
  readonly online: number;
  stop(): Promise<void>;
}

export interface TenantAgentsOptions {
  readonly gateway: string;
  /** A folder of its own in it for each agent. */
  readonly spool_dir?: string;
  /** The operator's: where models may be, how long they may be silent. What a tenant says goes on top, and can't widen where. */
  readonly model: Partial<ModelSettings>;
  /** Milliseconds between two chunks of a demo's answer; default 30. */
  readonly pace_ms?: number;
  readonly clock: Clock;
  readonly log: Log;
  /** For tests. */
  readonly start?: (options: StartAgentOptions) => RunningAgent;
}

/** Who was shut out is tried again after this, then after twice as long: each try is a failed hello of this address, and counts with those of others. */
const shutOut_ms = 30_000;
const shutOutMax_ms = 600_000;
/** How soon a spool that another process has is tried again. */
const held_ms = 5_000;
/** Who was served for so long was let in. */
const letIn_ms = 60_000;

/** Names an agent in logs and folders; its token is not to be guessed from it. */
const nameOf = ({ agent_token }: TenantAgent) => createHash('sha256').update(agent_token).digest('hex').slice(0, 16);

export function createTenantAgents(options: TenantAgentsOptions): TenantAgents {
  const { gateway, spool_dir, clock, log, start = startAgent } = options;
  const running = new Map<string, { readonly wanted: string; readonly agent: RunningAgent; replaced: boolean }>();
  /** Those that the gateway shut out. */
  const shut = new Map<string, { readonly until: number; readonly wait: number }>();
  /** Those whose spool another process has. */
  const held = new Set<string>();
  let listed: readonly TenantAgent[] = [];
  let retry: { cancel(): void } | undefined;
  let last: Promise<void> = Promise.resolve();

  const begin = (one: TenantAgent) => {
    const name = nameOf(one);
    const { agent_token: token, backend, url, key, model, system_prompt, context_tokens, history_chars } = one;
    const own = { agent_model: model, system_prompt, context_tokens, history_chars };
    try {
      const agent = start({
        gateway,
        token,
        backend,
        ...(url === undefined ? {} : { url }),
        ...(key === undefined ? {} : { key }),
        ...(one.name === undefined ? {} : { name: one.name }),
        ...(spool_dir === undefined ? {} : { spool: join(spool_dir, name) }),
        ...(options.pace_ms === undefined ? {} : { pace_ms: options.pace_ms }),
        model: { ...options.model, ...Object.fromEntries(Object.entries(own).filter(([, value]) => value !== undefined)) },
        clock,
        log,
      });
      const begun_at = clock.now();
      const entry = { wanted: JSON.stringify(one), agent, replaced: false };
      running.set(name, entry);
      void agent.stopped.then(({ reason }) => {
        if (reason === 'stopped') return;
        log.warn('agent.tenant_ended', { agent: name, reason });
        if (reason === 'replaced') entry.replaced = true;
        else if (running.get(name) === entry) {
          running.delete(name);
          const before = clock.now() - begun_at < letIn_ms ? (shut.get(name)?.wait ?? 0) : 0;
          const wait = Math.min(shutOutMax_ms, Math.max(shutOut_ms, 2 * before));
          shut.set(name, { until: clock.now() + wait, wait });
        }
      });
      held.delete(name);
    } catch (error) {
      if (!(error instanceof SpoolInUse)) return log.error('agent.tenant_not_started', { agent: name, error });
      if (!held.has(name)) log.warn('agent.spool_in_use', { agent: name, error });
      held.add(name);
    }
  };
  const change = async (agents: readonly TenantAgent[]) => {
    const wanted = new Map(agents.map((one) => [nameOf(one), one]));
    const leaving = [...running].filter(([name, { wanted: was }]) => {
      const now = wanted.get(name);
      return now === undefined || JSON.stringify(now) !== was;
    });
    // Its spool is free, and its link is gone, before its next begins.
    await Promise.all(
      leaving.map(async ([name, { agent }]) => {
        await agent.stop();
        running.delete(name);
      }),
    );
    // Who was gone from the list and stands there again may have been let in again.
    for (const name of shut.keys()) if (!wanted.has(name)) shut.delete(name);
    for (const [name, one] of wanted) if (!running.has(name) && clock.now() >= (shut.get(name)?.until ?? 0)) begin(one);
    for (const name of held) if (!wanted.has(name)) held.delete(name);
    retry?.cancel();
    retry = held.size === 0 ? undefined : clock.after(held_ms, () => void serve(listed));
    log.info('agent.tenants', { agents: running.size });
  };
  const serve = (agents: readonly TenantAgent[]): Promise<void> => {
    listed = agents;
    last = last.then(() => change(agents));
    return last;
  };

  return {
    serve,
    replaced: (one) => running.get(nameOf(one))?.replaced === true,
    reclaim(one) {
      if (running.get(nameOf(one))?.replaced) running.delete(nameOf(one));
    },
    get size() {
      return running.size;
    },
    get online() {
      return [...running.values()].filter(({ agent }) => agent.online).length;
    },
    async stop() {
      await last;
      retry?.cancel();
      await Promise.all([...running.values()].map(({ agent }) => agent.stop()));
    },
  };
}
