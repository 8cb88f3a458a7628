import type { ChannelRow, MessageRow, TurnRow } from '@iris/store';

/** The frame that offers a turn to its agent. */
export const startFrameOf = (row: TurnRow, message: MessageRow, channel: ChannelRow | undefined): Record<string, unknown> => ({
  type: 'turn.start',
  chat_id: row.chat_id,
  thread_id: row.thread_id,
  turn_id: row.turn_id,
  payload: {
    message: {
      message_id: message.message_id,
      text: message.text,
      ts: message.ts,
      ...(message.reply_to === null ? {} : { reply_to: message.reply_to }),
      ...(message.media === null ? {} : { media: message.media }),
    },
    kind: row.kind,
    ...(row.device_id === null ? {} : { user: { device_id: row.device_id } }),
    ...(channel === undefined ? {} : { channel: { name: channel.name, kind: channel.kind, auto: channel.auto } }),
    attempt: row.attempt,
  },
});
