import type { Clock } from '@iris/runtime';
import type { PushContent, PushTargetRow } from '@iris/store';
import type { Http, HttpRequest } from './http.js';
import { type Notice, retryAfter, type Sender, type Verdict } from './sender.js';

const topicPattern = /^[-_A-Za-z0-9]{1,64}$/;
/** What ntfy shows at most. */
const actionsMax = 3;

/**
 * ntfy's publish API. Each push has a sequence id: the same again changes the shown notification without a sound, and it can be deleted by it.
 * What is `encrypted` elsewhere is ids here: a topic has no key.
 */
export function ntfySender(options: { url: string; access?: string | undefined; http: Http; clock: Clock; timeout_ms: number }): Sender {
  const { http, clock, timeout_ms, access } = options;
  const base = options.url.replace(/\/+$/, '');
  const credentials = access === undefined ? {} : { authorization: `Bearer ${access}` };

  const ask = async (request: Omit<HttpRequest, 'headers'>): Promise<Verdict> => {
    try {
      const headers = { ...credentials, ...(request.body === undefined ? {} : { 'content-type': 'application/json' }) };
      const answer = await http({ ...request, headers }, { timeout_ms });
      const { status } = answer;
      const said = `${status}${codeOf(answer.text)}`;
      if (status >= 200 && status < 300) return { is: 'accepted', answer: said };
      // 507: nobody is subscribed to a UnifiedPush topic yet.
      if (status === 429 || status >= 500) return { is: 'retry', answer: said, ...retryAfter(answer.headers['retry-after'], clock.now()) };
      return { is: 'refused', answer: said };
    } catch (error) {
      return { is: 'retry', answer: (error as Error).message };
    }
  };
  return {
    kind: 'ntfy',
    server: () => base,
    async send(target, notice, content) {
      if (!topicPattern.test(target.address)) return { is: 'dead', answer: 'no topic' };
      return ask({ method: 'POST', url: base, body: JSON.stringify(messageOf(target, notice, content)) });
    },
    async withdraw(target, shown) {
      if (!topicPattern.test(target.address)) return { is: 'dead', answer: 'no topic' };
      return ask({ method: 'DELETE', url: `${base}/${target.address}/${sequenceOf(shown)}` });
    },
  };
}

/** `tag` names the lane and would silence all but its first push; with the cursor each buzzes once. */
const sequenceOf = ({ tag, cursor }: { tag: string; cursor: number }): string => `${tag}-${cursor}`;

function messageOf({ address }: PushTargetRow, notice: Notice, content: PushContent): Record<string, unknown> {
  const { answers } = notice;
  const full = content === 'full';
  const offered = full && answers !== undefined && answers.choices.length > 0 && answers.choices.length <= actionsMax ? answers : undefined;
  return {
    topic: address,
    sequence_id: sequenceOf(notice),
    title: full || content === 'title' ? notice.title : 'Iris',
    message: full ? notice.body : generic[notice.class],
    priority: notice.class === 'picker' ? 4 : 3,
    ...(offered === undefined
      ? {}
      : {
          actions: offered.choices.map(({ value, label }) => ({
            action: 'http',
            label,
            url: offered.url,
            method: 'POST',
            headers: { 'content-type': 'application/json' },
            body: JSON.stringify({ token: offered.token, value }),
            clear: true,
          })),
        }),
  };
}

const generic: Readonly<Record<Notice['class'], string>> = {
  reply: 'New message',
  cron: 'New message',
  failure: 'A turn failed',
  picker: 'A question waits for you',
  notification: 'New notification',
};

/** ntfy's own error code, such as 42901. */
function codeOf(text: string): string {
  try {
    const { code } = JSON.parse(text) as { code?: unknown };
    return typeof code === 'number' ? ` ${code}` : '';
  } catch {
    return '';
  }
}
