import { ReachConfig } from '@iris/runtime';
import { type Static, Type } from 'typebox';

/** What `openai` and `hermes` are told of the model and of where it may be. */
export const ModelSettings = {
  agent_model: Type.Optional(
    Type.String({ minLength: 1, maxLength: 256, description: 'the model; default: the first that the endpoint names' }),
  ),
  system_prompt: Type.Optional(Type.String({ minLength: 1, description: 'what the model is told before everything else' })),
  context_tokens: Type.Optional(Type.Integer({ minimum: 1, description: 'tokens that the model holds; default: what the endpoint says' })),
  history_chars: Type.Integer({
    default: 48_000,
    minimum: 0,
    maximum: 4_000_000,
    description: 'characters of the conversation that go along with each question',
  }),
  model_retries: Type.Integer({
    default: 3,
    minimum: 0,
    maximum: 10,
    description: 'how often a request to the model is made again before its first token',
  }),
  silence_ms: Type.Integer({
    default: 300_000,
    minimum: 1_000,
    description: 'milliseconds without a word from the model after which a turn fails',
  }),
  private_addresses: Type.Boolean({
    default: true,
    description: 'whether the model may be on this machine or in a private network; off where others choose the address',
  }),
  allow_hosts: ReachConfig.allow_hosts,
  allow_addresses: ReachConfig.allow_addresses,
};

/** What the runner is told, by flags or by the environment. */
export const AgentConfig = Type.Object({
  gateway_url: Type.String({ pattern: '^wss?://.', description: 'address of the agent link: wss://<gateway>/agent' }),
  agent_token: Type.String({ minLength: 1, secret: true, description: "the agent's token" }),
  agent_name: Type.Optional(
    Type.String({ minLength: 1, maxLength: 64, description: "what the gateway calls it; default: the backend's name" }),
  ),
  spool_dir: Type.Optional(Type.String({ minLength: 1, description: 'a folder of its own: what was said survives a restart' })),
  pace_ms: Type.Integer({ default: 30, minimum: 0, maximum: 10_000, description: 'milliseconds between two chunks of a demo answer' }),
  agent_key: Type.Optional(Type.String({ minLength: 1, secret: true, description: 'the key of the endpoint behind openai or hermes' })),
  ...ModelSettings,
  log_level: Type.Enum(['debug', 'info', 'warn', 'error', 'silent'], {
    default: 'info',
    description: 'least severe log line that is written',
  }),
  stop_ms: Type.Integer({ default: 15_000, minimum: 0, description: 'milliseconds for stopping' }),
});
export type AgentConfig = Static<typeof AgentConfig>;

const ModelObject = Type.Object(ModelSettings);
export type ModelSettings = Static<typeof ModelObject>;
