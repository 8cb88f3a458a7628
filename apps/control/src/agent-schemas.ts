import { Type } from 'typebox';
import { id, name, nullable, strict, time } from './schemas.js';

export const AgentParams = Type.Object({ tenant_id: id('tenant'), agent_id: id('agent') });
export const ChannelParams = Type.Object({ tenant_id: id('tenant'), chat_id: id('channel') });

const url = Type.String({ pattern: '^https?://.', maxLength: 2_048, description: 'where the endpoint is' });
const ofModel = {
  model: Type.Optional(Type.String({ minLength: 1, maxLength: 256, description: 'default: the first that the endpoint names' })),
  system_prompt: Type.Optional(
    Type.String({ minLength: 1, maxLength: 16_000, description: 'what the model is told before everything else' }),
  ),
  context_tokens: Type.Optional(Type.Integer({ minimum: 1, description: 'tokens that the model holds; default: what the endpoint says' })),
  history_chars: Type.Optional(
    Type.Integer({ minimum: 0, maximum: 4_000_000, description: 'characters of the conversation that go along; default 48000' }),
  ),
};
const key = Type.Optional(
  Type.Union([Type.String({ minLength: 1, maxLength: 4_096 }), Type.Null()], {
    description: 'of the endpoint; kept sealed, never shown. Absent: the one that stands, as long as kind and host stay; null: none',
  }),
);
/** What the gateway's own runner answers with. */
export const BackendChange = Type.Union(
  [
    Type.Object({ kind: Type.Literal('demo') }, strict),
    Type.Object({ kind: Type.Literal('openai'), url, key, ...ofModel }, strict),
    Type.Object({ kind: Type.Literal('hermes'), url, key, ...ofModel }, strict),
  ],
  { description: 'what the gateway’s own runner answers with; without one, the agent attaches by itself' },
);
export const NewAgent = Type.Object(
  { name: name(), is_default: Type.Optional(Type.Boolean()), backend: Type.Optional(BackendChange) },
  strict,
);
export const AgentChange = Type.Object(
  {
    name: Type.Optional(name()),
    is_default: Type.Optional(Type.Literal(true)),
    backend: Type.Optional(Type.Union([BackendChange, Type.Null()], { description: 'takes the place of the one that stands; null: none' })),
  },
  { ...strict, minProperties: 1 },
);
export const ChannelChange = Type.Object(
  { agent_id: Type.Union([id('the agent that serves it and its threads'), Type.Null()], { description: 'null: the default agent' }) },
  strict,
);

export const Agent = Type.Object({
  agent_id: Type.String(),
  name: Type.String(),
  is_default: Type.Boolean(),
  install_id: nullable('of its newest installation'),
  linked: Type.Boolean(),
  link_seen_at: time,
  caps: Type.Record(Type.String(), Type.Unknown()),
  commands: Type.Integer({ description: 'how many it offers' }),
  backend: Type.Union(
    [
      Type.Null(),
      Type.Object({
        kind: Type.String(),
        url: Type.Optional(Type.String()),
        has_key: Type.Boolean({ description: 'the key itself is never shown' }),
        waits: Type.Boolean({ description: 'it came with an archive, which holds no keys, and serves nobody until it is set again' }),
        ...ofModel,
      }),
    ],
    { description: 'null: it attaches by itself' },
  ),
  created_at: Type.Integer(),
});
export const Channel = Type.Object({
  chat_id: Type.String(),
  thread_id: nullable('null in the channel itself'),
  kind: Type.String(),
  name: Type.String(),
  is_default: Type.Boolean(),
  agent_id: nullable('the agent that serves it; null: the default agent'),
  created_at: Type.Integer(),
});
export const ChannelList = Type.Object({ channels: Type.Array(Channel) });
export const AgentList = Type.Object({ agents: Type.Array(Agent) });
export const AgentCreated = Type.Object({
  agent_id: Type.String(),
  agent_token: Type.String({ description: 'shown once' }),
  token_id: Type.String(),
});
