import { Type } from 'typebox';
import { limits } from '../limits.js';
import { ChannelEntry } from './channel.js';
import { CommandEntry } from './history.js';
import { Id, Ids, MediaEntry, MediaKind, NullableId, Role, Timestamp } from './shared.js';

const Seq = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });

export const AgentCaps = Type.Object({
  stream: Type.Optional(Type.Boolean()),
  reasoning: Type.Optional(Type.Boolean()),
  tools: Type.Optional(Type.Boolean()),
  pickers: Type.Optional(Type.Array(Type.String())),
  steer: Type.Optional(Type.Boolean()),
  stop: Type.Optional(Type.Boolean()),
  delete: Type.Optional(Type.Boolean()),
  titles: Type.Optional(Type.Boolean()),
  cron: Type.Optional(Type.Boolean()),
  media: Type.Optional(Type.Boolean()),
  resume: Type.Optional(Type.Boolean()),
});

export const AgentHello = Type.Object({
  /** Only for clients that cannot set the `Authorization` header. */
  token: Type.Optional(Type.String({ maxLength: limits.token_length })),
  agent: Type.String({ minLength: 1, maxLength: 64 }),
  version: Type.Optional(Type.String({ maxLength: 64 })),
  /** Stable for the installation: `seq` counts per `install_id`. */
  install_id: Id,
  /** New each time the process starts. */
  boot_id: Id,
  caps: Type.Optional(AgentCaps),
  /** The highest `seq` of the gateway that the agent has processed and stored. */
  last_seq: Seq,
  open_turns: Type.Optional(Type.Array(Id, { maxItems: 10_000 })),
});

export const AgentHelloAck = Type.Object({
  link_id: Id,
  /** Rises with each link of the agent; an older one can no longer act. */
  epoch: Type.Integer({ minimum: 1 }),
  last_seq: Seq,
  heartbeat_ms: Type.Integer({ minimum: 1 }),
  limits: Type.Optional(Type.Record(Type.String(), Type.Number())),
  /** Turns the gateway holds open for this agent. */
  turns: Type.Array(
    Type.Object({
      turn_id: Id,
      chat_id: Id,
      thread_id: NullableId,
      state: Type.Enum(['sent', 'running']),
      /** `message_id`s are the agent's own; the offset is UTF-16 code units of text the gateway has. */
      messages: Type.Optional(Type.Array(Type.Object({ message_id: Id, length: Type.Integer() }))),
    }),
  ),
  channels: Type.Array(ChannelEntry),
});

export const TurnStart = Type.Object({
  message: Type.Object({
    message_id: Id,
    text: Type.String(),
    ts: Timestamp,
    reply_to: Type.Optional(NullableId),
    media: Type.Optional(Type.Array(MediaEntry)),
  }),
  kind: Type.Enum(['chat', 'command']),
  user: Type.Optional(Type.Object({ device_id: Type.Optional(Id), name: Type.Optional(Type.String()) })),
  channel: Type.Optional(Type.Object({ name: Type.String(), kind: Type.String(), auto: Type.Optional(Type.Boolean()) })),
  /** 1, then one more for each new `boot_id` before `turn.accepted`. */
  attempt: Type.Integer({ minimum: 1 }),
});
export const AgentSteerDown = Type.Object({ text: Type.String(), message_id: Type.Optional(Id) });
export const AgentSteerUp = Type.Object({ accepted: Type.Boolean() });
export const AgentPickerClosedDown = Type.Object({
  picker_id: Id,
  reason: Type.Enum(['expired', 'turn_ended']),
});
export const AgentPickerClosedUp = Type.Object({ picker_id: Id, reason: Type.Optional(Type.String()) });
export const Drain = Type.Object({ deadline_ms: Type.Integer({ minimum: 0 }) });
export const AgentAck = Type.Object({ removed: Type.Optional(Type.Array(Id)), missing: Type.Optional(Type.Array(Id)) });

export const TurnEnd = Type.Object({
  outcome: Type.Enum(['completed', 'failed', 'cancelled', 'interrupted']),
  error: Type.Optional(Type.String()),
  usage: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
});
export const TurnSnapshot = Type.Object({
  messages: Type.Array(Type.Object({ message_id: Id, role: Role, text: Type.String(), reasoning: Type.Optional(Type.String()) })),
  tools: Type.Optional(
    Type.Array(Type.Object({ index: Type.Integer({ minimum: 0 }), name: Type.String(), preview: Type.Optional(Type.String()) })),
  ),
  pickers: Type.Optional(Type.Array(Id)),
  reason: Type.Optional(Type.String()),
});
export const CommandsCatalogUp = Type.Object({ commands: Type.Array(CommandEntry), rev: Type.Optional(Type.Unknown()) });
/** `own_ids`: what the agent itself called those of them that it said, by our id. */
export const AgentMessageDeleted = Type.Object({
  message_ids: Type.Array(Id),
  own_ids: Type.Optional(Type.Record(Type.String(), Type.String())),
});
export const AgentMessageDelete = Type.Object({ message_ids: Ids });
export const MediaRequest = Type.Object({
  kind: MediaKind,
  mime: Type.String(),
  size: Type.Integer({ minimum: 1 }),
  filename: Type.Optional(Type.String()),
  sha256: Type.Optional(Type.String()),
});
export const MediaGrant = Type.Object({ media_id: Id, url: Type.String(), expires_at: Timestamp });
/** As the agent sends it: `ts` is given by the gateway. */
export const AgentMessage = Type.Object({
  message_id: Id,
  role: Type.Optional(Role),
  text: Type.String(),
  reasoning: Type.Optional(Type.String()),
  media: Type.Optional(Type.Array(MediaEntry)),
  reply_to: Type.Optional(NullableId),
  model: Type.Optional(Type.String()),
  tokens: Type.Optional(Type.Integer({ minimum: 0 })),
  runtime: Type.Optional(Type.Object({})),
});
