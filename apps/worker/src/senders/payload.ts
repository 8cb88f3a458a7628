import type { PushContent } from '@iris/store';
import type { Notice } from './sender.js';

/**
 * What an app that draws notifications itself is given: flat, every value text. With `ids` it fetches the words over its connection; tokens that
 * answer go only where the words may go.
 */
export function payloadOf(notice: Notice, content: PushContent): Record<string, string> {
  const words = content === 'full' || content === 'encrypted';
  const { answers } = notice;
  return {
    type: 'push',
    cursor: String(notice.cursor),
    tag: notice.tag,
    class: notice.class,
    chat_id: notice.chat_id,
    ...(notice.thread_id === null ? {} : { thread_id: notice.thread_id }),
    ...(notice.message_id === null ? {} : { message_id: notice.message_id }),
    ...(notice.picker_id === null ? {} : { picker_id: notice.picker_id }),
    ts: String(notice.ts),
    ...(words || content === 'title' ? { title: notice.title } : {}),
    ...(words ? { body: notice.body } : {}),
    ...(words && answers !== undefined
      ? { answer_url: answers.url, action_token: answers.token, choices: JSON.stringify(answers.choices) }
      : {}),
  };
}

export const withdrawalOf = ({ tag, cursor }: { tag: string; cursor: number }): Record<string, string> => ({
  type: 'withdraw',
  tag,
  cursor: String(cursor),
});
