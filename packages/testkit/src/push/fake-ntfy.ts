import type { Clock } from '@iris/runtime';
import { json, type ProviderAnswer, type ProviderRequest, type Troubles, textOf, troubles, withTrouble } from './provider.js';

export interface NtfyMessage {
  readonly topic: string;
  readonly sequence_id: string;
  readonly title: string;
  readonly message: string;
  readonly priority: number;
  readonly actions: readonly { readonly label: string; readonly url: string; readonly body: string }[];
  readonly at: number;
}

/** ntfy's publish API, as documented from server 2.16 on: publish as JSON, and delete by sequence id. */
export interface FakeNtfy extends Troubles {
  readonly published: readonly NtfyMessage[];
  readonly deleted: readonly { readonly topic: string; readonly sequence_id: string }[];
  /** What a subscriber sees now, by sequence id. */
  shown(topic: string): ReadonlyMap<string, NtfyMessage>;
  /** How often a subscriber's phone made a sound: a known sequence id only changes what is shown. */
  buzzes(topic: string): number;
  handle(request: ProviderRequest): Promise<ProviderAnswer | undefined>;
}

export const ntfyAccess = 'tk_fake_access_token';
export const ntfyError = (http: number, code: number, error: string, headers: Record<string, string> = {}): ProviderAnswer =>
  json(http, { code, http, error, link: 'https://ntfy.sh/docs/publish/' }, headers);
const topicPattern = /^[-_A-Za-z0-9]{1,64}$/;

export function fakeNtfy(clock: Clock): FakeNtfy {
  const book = troubles();
  const published: NtfyMessage[] = [];
  const deleted: { topic: string; sequence_id: string }[] = [];
  const shown = new Map<string, Map<string, NtfyMessage>>();
  const buzzes = new Map<string, number>();
  const shownOf = (topic: string) => {
    const map = shown.get(topic) ?? new Map<string, NtfyMessage>();
    shown.set(topic, map);
    return map;
  };

  const publish = async ({ body }: ProviderRequest): Promise<ProviderAnswer | undefined> => {
    let given: Partial<NtfyMessage>;
    try {
      given = JSON.parse(textOf(body)) as Partial<NtfyMessage>;
    } catch {
      return ntfyError(400, 40024, 'invalid request: request body must be message JSON');
    }
    const { topic = '', sequence_id = '', title = '', message = 'triggered', priority = 3, actions = [] } = given;
    return withTrouble(book, clock, topic, () => {
      if (!topicPattern.test(topic)) return ntfyError(400, 40009, 'invalid request: topic invalid');
      if (!topicPattern.test(sequence_id)) return ntfyError(400, 40049, 'invalid request: sequence ID invalid');
      if (Buffer.byteLength(message) > 4_096 || actions.length > 3) return ntfyError(400, 40012, 'invalid request');
      const one: NtfyMessage = { topic, sequence_id, title, message, priority, actions, at: clock.now() };
      published.push(one);
      if (!shownOf(topic).has(sequence_id)) buzzes.set(topic, (buzzes.get(topic) ?? 0) + 1);
      shownOf(topic).set(sequence_id, one);
      return json(200, { id: `n${published.length}`, time: Math.floor(clock.now() / 1_000), event: 'message', topic, sequence_id });
    });
  };
  const remove = (topic: string, sequence_id: string) =>
    withTrouble(book, clock, topic, () => {
      deleted.push({ topic, sequence_id });
      shownOf(topic).delete(sequence_id);
      return json(200, { id: `d${deleted.length}`, event: 'message_delete', topic, sequence_id });
    });

  return {
    set: book.set,
    clear: book.clear,
    published,
    deleted,
    shown: shownOf,
    buzzes: (topic) => buzzes.get(topic) ?? 0,
    async handle(request) {
      if (request.headers.authorization !== `Bearer ${ntfyAccess}`) return ntfyError(401, 40101, 'unauthorized');
      if (request.method === 'POST' && request.path === '/') return publish(request);
      const [, topic, sequence_id] = /^\/([^/]+)\/([^/]+)$/.exec(request.path) ?? [];
      if (request.method === 'DELETE' && topic !== undefined && sequence_id !== undefined) return remove(topic, sequence_id);
      return ntfyError(404, 40401, 'page not found');
    },
  };
}
