import { type Static, Type } from 'typebox';

/** What the runner is told, by flags or by the environment. */
export const AgentConfig = Type.Object({
  gateway_url: Type.String({ pattern: '^wss?://.', description: 'address of the agent link: wss://<gateway>/agent' }),
  agent_token: Type.String({ minLength: 1, secret: true, description: "the agent's token" }),
  agent_name: Type.Optional(
    Type.String({ minLength: 1, maxLength: 64, description: "what the gateway calls it; default: the backend's name" }),
  ),
  spool_dir: Type.Optional(Type.String({ minLength: 1, description: 'a folder of its own: what was said survives a restart' })),
  pace_ms: Type.Integer({ default: 30, minimum: 0, maximum: 10_000, description: 'milliseconds between two chunks of a demo answer' }),
  log_level: Type.Enum(['debug', 'info', 'warn', 'error', 'silent'], {
    default: 'info',
    description: 'least severe log line that is written',
  }),
  stop_ms: Type.Integer({ default: 15_000, minimum: 0, description: 'milliseconds for stopping' }),
});
export type AgentConfig = Static<typeof AgentConfig>;
