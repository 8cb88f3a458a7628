import { Type } from 'typebox';
import { limits } from '../limits.js';
import { Empty, Id, NullableId } from './shared.js';

/** One row of the channel directory. Threads carry their channel's `chat_id` and their own `thread_id`. */
export const ChannelEntry = Type.Object({
  chat_id: Id,
  name: Type.String(),
  kind: Type.Enum(['default', 'channel', 'thread']),
  is_default: Type.Optional(Type.Boolean()),
  thread_id: Type.Optional(Id),
  parent_chat_id: Type.Optional(NullableId),
  /** The gateway or an agent named it; a person's rename clears it. */
  auto: Type.Optional(Type.Boolean()),
});

/** As it is typed; trimmed, it must have 1–128 code points, which the session checks. */
const Name = Type.String({ maxLength: limits.name_raw_length });

export const ChannelCreate = Type.Object({
  name: Name,
  kind: Type.Optional(Type.Enum(['channel', 'thread'])),
  parent_chat_id: Type.Optional(NullableId),
});
/** `only_if_current`, from agents: the name that the lane must still have. */
export const ChannelRename = Type.Object({ name: Name, only_if_current: Type.Optional(Type.String()) });
export const ChannelSetDefault = Empty;
export const ChannelDelete = Empty;

export const ChannelList = Type.Object({ channels: Type.Array(ChannelEntry) });
export const ChannelCreated = ChannelEntry;
export const ChannelRenamed = Type.Object({
  chat_id: Id,
  thread_id: Type.Optional(Id),
  parent_chat_id: Type.Optional(NullableId),
  name: Type.String(),
  kind: Type.Optional(Type.String()),
});
export const ChannelDeleted = Type.Object({ chat_id: Id, thread_id: Type.Optional(Id) });
