import { type Static, Type } from 'typebox';
import { limits } from '../limits.js';
import { Message } from './message.js';
import { Id, NullableId, Role, Timestamp } from './shared.js';

/** `limit` outside 1–200 is clamped, not refused. */
export const HistoryUp = Type.Object({ before_message_id: Type.Optional(NullableId), limit: Type.Optional(Type.Number()) });
export const HistoryDown = Type.Object({
  /** Oldest first. */
  messages: Type.Array(Message),
  has_more: Type.Boolean(),
  oldest_message_id: Type.Optional(Id),
});

export const Search = Type.Object({
  query: Type.String({ maxLength: limits.query_length }),
  scope: Type.Optional(Type.Enum(['all', 'chat'])),
});
/** Without a scope: `chat` when a lane is named, else `all`. */
export const refineSearch = ({ scope }: Static<typeof Search>, { chat_id }: { chat_id?: string | undefined }): string | undefined =>
  scope === 'chat' && chat_id === undefined ? 'chat_id: missing' : undefined;
export const SearchResults = Type.Object({
  query: Type.String(),
  scope: Type.String(),
  hits: Type.Array(Type.Object({ message_id: Id, chat_id: Id, thread_id: NullableId, role: Role, snippet: Type.String(), ts: Timestamp })),
  has_more: Type.Optional(Type.Boolean()),
});

export const CommandEntry = Type.Object({
  name: Type.String(),
  description: Type.String(),
  args_hint: Type.Optional(Type.String()),
  category: Type.Optional(Type.String()),
  aliases: Type.Optional(Type.Array(Type.String())),
});
export const CommandsCatalogDown = Type.Object({ commands: Type.Array(CommandEntry) });
export const CommandsCompleteUp = Type.Object({ prefix: Type.String({ maxLength: limits.query_length }) });
export const CommandsCompleteDown = Type.Object({ prefix: Type.String(), matches: Type.Array(CommandEntry) });
