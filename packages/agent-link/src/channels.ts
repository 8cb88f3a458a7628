import type { Channel } from './types.js';

type Key = { readonly chat_id: string; readonly thread_id?: string };
const keyOf = ({ chat_id, thread_id }: Key): string => (thread_id === undefined ? chat_id : `${chat_id}\n${thread_id}`);

/** The tenant's channels and threads, as the gateway told them. */
export interface ChannelDirectory {
  replace(channels: readonly Channel[]): void;
  /** A new one, or a new name. */
  put(channel: Key & { readonly name: string; readonly kind?: string }): void;
  /** A channel takes its threads along. */
  remove(key: Key): void;
  list(): readonly Channel[];
  defaultChat(): string | undefined;
}

export function channelDirectory(): ChannelDirectory {
  const channels = new Map<string, Channel>();
  return {
    replace(all) {
      channels.clear();
      for (const channel of all) channels.set(keyOf(channel), channel);
    },
    put(channel) {
      const kind = channel.thread_id === undefined ? 'channel' : 'thread';
      channels.set(keyOf(channel), { ...(channels.get(keyOf(channel)) ?? { kind }), ...channel } as Channel);
    },
    remove(key) {
      if (key.thread_id !== undefined) channels.delete(keyOf(key));
      else for (const [at, channel] of [...channels]) if (channel.chat_id === key.chat_id) channels.delete(at);
    },
    list: () => [...channels.values()],
    defaultChat: () => [...channels.values()].find((channel) => channel.is_default)?.chat_id,
  };
}
