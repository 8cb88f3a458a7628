import { laneOf } from '@iris/testkit';

/** What must be true after everything so far, in as few words as it can be said. */
export interface Model {
  readonly lanes: Map<string, ModelLane>;
  default_chat: string;
  /** Sends whose answer was lost with the connection, by device: said or not, until they are asked again. */
  readonly unsure: Map<string, { readonly client_ref: string; readonly text: string; readonly lane: string }>;
  /** Open pickers and the turn of each. */
  readonly pickers: Map<string, string>;
  /** How far each device has read each lane: by device and lane, the message and its place. */
  readonly reads: Map<string, { readonly device_id: string; readonly lane: string; readonly message_id: string; readonly cursor: number }>;
  /** Who sent which message, and where: whom its receipt is for. */
  readonly senders: Map<string, Sent>;
  /** Messages that the agent has said it has. */
  readonly taken: Set<string>;
  /** Turns of the second agent whose answers are known. */
  readonly heard: Set<string>;
  /** Of these its sender must have the receipt, now or on its next connection: message and device. */
  readonly owed: Map<string, string>;
  /** Devices whose connection went and did not say so: what is told to it is lost. */
  readonly vanished: Set<string>;
  /** Accepted turns that the agent's next process knows nothing of: they are ended, sooner or later, with what they had said. */
  lost: readonly LostTurn[];
  /** The outbox came back empty: what devices had not got of receipts is gone. */
  lossy: boolean;
}
export interface ModelLane {
  readonly chat_id: string;
  readonly thread_id: string | null;
  name: string;
  /** By cursor, which is the order in which they were said. */
  said: readonly Said[];
}
export interface Sent {
  readonly device_id: string;
  readonly lane: string;
  readonly text: string;
}
export interface LostTurn {
  readonly turn_id: string;
  readonly lane: string;
  readonly texts: readonly string[];
}
export interface Said {
  readonly message_id: string;
  readonly cursor: number;
  readonly role: string;
  readonly text: string;
}

export function newModel(): Model {
  const chat_id = 'android:default';
  const home: ModelLane = { chat_id, thread_id: null, name: 'Default', said: [] };
  return {
    lanes: new Map([[chat_id, home]]),
    default_chat: chat_id,
    unsure: new Map(),
    pickers: new Map(),
    reads: new Map(),
    senders: new Map(),
    taken: new Set(),
    heard: new Set(),
    owed: new Map(),
    vanished: new Set(),
    lost: [],
    lossy: false,
  };
}

export function say(model: Model, lane: string, said: Said): void {
  const found = model.lanes.get(lane);
  if (found) found.said = [...found.said, said].sort((a, b) => a.cursor - b.cursor);
}

export function removeLane(model: Model, { chat_id, thread_id }: ModelLane): void {
  for (const [key, lane] of model.lanes)
    if (lane.chat_id === chat_id && (thread_id === null || lane.thread_id === thread_id)) model.lanes.delete(key);
  for (const [key, { lane }] of model.reads) if (!model.lanes.has(lane)) model.reads.delete(key);
}

/** Forward only, by the message's place. */
export function read(model: Model, device_id: string, lane: string, { message_id, cursor }: Said): void {
  const key = `${device_id} ${lane}`;
  if ((model.reads.get(key)?.cursor ?? -1) < cursor) model.reads.set(key, { device_id, lane, message_id, cursor });
}

export function endTurn(model: Model, ended: string): void {
  for (const [picker_id, turn_id] of model.pickers) if (turn_id === ended) model.pickers.delete(picker_id);
}

/** Words of messages: parts of each other, of several scripts. */
export const words = ['deploy', 'redeploy', 'deployed', 'Café', 'Привет', '天気', '🦊', 'Σίσυφος'] as const;
export const queries = [
  'deploy',
  'redeploy',
  'ploy',
  'CAFE',
  'привет',
  '天',
  '🦊',
  'σισυφος',
  'deploy cafe',
  'deploy -天気',
  'nowhere',
  '',
] as const;

/** What {@link queries} find, by a definition of search that is as dull as can be: newest first within each rank. */
export function find(model: Model, query: string, only: string | undefined): string[] {
  const plain = (text: string): string[] => text.normalize('NFD').replace(/\p{M}/gu, '').toLowerCase().replaceAll('ς', 'σ').split(' ');
  const terms = plain(query).filter((term) => term !== '' && !term.startsWith('-'));
  const without = plain(query).filter((term) => term.startsWith('-'));
  if (terms.length === 0) return [];
  const hits = [...model.lanes].flatMap(([key, { said }]) =>
    (only === undefined || only === key ? said : []).flatMap(({ message_id, cursor, text }) => {
      const has = plain(text);
      const part = (term: string) => has.some((word) => word.includes(term));
      if (!terms.every(part) || without.some((term) => part(term.slice(1)))) return [];
      const whole = (term: string) => has.includes(term) || (/^[天🦊]/u.test(term) && part(term));
      const start = (term: string) => whole(term) || has.some((word) => word.startsWith(term));
      const inRow = terms.length === 1 ? terms.every(whole) : ` ${has.join(' ')} `.includes(` ${terms.join(' ')} `);
      return [{ message_id, cursor, rank: inRow ? 0 : terms.every(whole) ? 1 : terms.every(start) ? 2 : 3 }];
    }),
  );
  return hits.sort((a, b) => a.rank - b.rank || b.cursor - a.cursor).map(({ message_id }) => message_id);
}

export const keyOf = (lane: Pick<ModelLane, 'chat_id' | 'thread_id'>): string => laneOf(lane);
