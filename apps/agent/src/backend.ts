import type { Agent, AgentOptions } from '@iris/agent-link';

/** What thinks behind the link. `name` and `version` are what `hello` says. */
export interface Backend extends Pick<AgentOptions, 'name' | 'version' | 'commands' | 'caps' | 'onTurn' | 'onDeleted'> {
  /** Called once, before any turn: for what a backend says outside turns. */
  attached?(agent: Agent): void;
  /** Let go of timers and the like. */
  close?(): void;
}
