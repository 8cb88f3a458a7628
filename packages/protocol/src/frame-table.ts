import type { Static, TSchema } from 'typebox';
import * as agent from './frames/agent.js';
import * as link from './frames/agent-link.js';
import * as channel from './frames/channel.js';
import * as connection from './frames/connection.js';
import * as history from './frames/history.js';
import * as media from './frames/media.js';
import * as message from './frames/message.js';
import * as picker from './frames/picker.js';
import { Empty } from './frames/shared.js';
import * as tool from './frames/tool.js';

/** What every side of a row has. */
export interface PayloadRow {
  /** JSON Schema of the payload, compiled once. Fields it does not name are ignored. */
  readonly schema: TSchema;
  /** What a schema cannot say, checked after it: what is wrong, beginning with the field's name. */
  refine?(payload: unknown, lane: { chat_id?: string | undefined }): string | undefined;
}

/** Device → gateway. */
export interface UpRow extends PayloadRow {
  /**
   * `lane`: `chat_id` is required; `lane_or_default`: without one, the default channel; `lane_or_all`: without one, every lane;
   * `none`: not about a lane, a `chat_id` is not looked at.
   */
  readonly scope: 'none' | 'lane' | 'lane_or_default' | 'lane_or_all';
  readonly answered_by: 'edge' | 'session';
  /** The frame that answers a request with an `id`; null when nothing does. An `error` can always stand in its place. */
  readonly answer: string | null;
  /** Milliseconds from arrival to the answer; then the edge says `error internal`. */
  readonly deadline_ms: number;
  /** It changes state: it carries an idempotency key across retries. */
  readonly changes: boolean;
  /** The next request of the connection may start once this one has its place in the order. */
  readonly pipelined?: true;
}

/** Gateway → device. */
export interface DownRow extends PayloadRow {
  /**
   * `durable`: outboxed, never dropped, replayed by `sync`. `coalesced`: live only, the latest of its key replaces the
   * one waiting. `live`: live only. `response`: to one connection, never dropped while it lives.
   */
  readonly class: 'durable' | 'coalesced' | 'live' | 'response';
  /** What a newer frame of the same type replaces: with `coalesced`, the one waiting; with `durable`, the older one in `sync`. */
  readonly key?: 'message' | 'tool' | 'lane_activity' | 'lane_receipt' | 'picker';
  /** May wake a phone. `final`: only from roles assistant and cron. */
  readonly push?: 'final' | 'always';
}

/** Agent → gateway. */
export interface AgentUpRow extends PayloadRow {
  /** Carries a `seq`, is kept by the agent until acked, and is stored before the ack. */
  readonly durable: boolean;
  /** Whether it belongs to a turn; `none` is not about a lane either. */
  readonly turn: 'required' | 'optional' | 'none';
}

/** Gateway → agent. */
export interface AgentDownRow extends PayloadRow {
  readonly durable: boolean;
}

/** The four ways a frame can go. */
export type FrameSide = 'up' | 'down' | 'agent_up' | 'agent_down';

/** All that is said with one `type`, from each side that says it. */
export interface FrameRow {
  readonly up?: UpRow;
  readonly down?: DownRow;
  readonly agent_up?: AgentUpRow;
  readonly agent_down?: AgentDownRow;
  /** Rules of SPEC.md that say what it means. */
  readonly rules: readonly string[];
}

const session_ms = 10_000;
const ask = <S extends TSchema, A extends string | null>(schema: S, answer: A, scope: UpRow['scope'] = 'none') =>
  ({ schema, scope, answered_by: 'session', answer, deadline_ms: session_ms, changes: false }) as const;
const change = <S extends TSchema, A extends string | null>(schema: S, answer: A, scope: UpRow['scope'] = 'none') =>
  ({ schema, scope, answered_by: 'session', answer, deadline_ms: session_ms, changes: true }) as const;
const local = <S extends TSchema, A extends string | null>(schema: S, answer: A, deadline_ms: number = session_ms) =>
  ({ schema, scope: 'none', answered_by: 'edge', answer, deadline_ms, changes: false }) as const;
const durable = <S extends TSchema, M extends Pick<DownRow, 'key' | 'push'>>(schema: S, more?: M) =>
  ({ schema, class: 'durable', ...(more as M) }) as const;
const coalesced = <S extends TSchema>(schema: S, key: 'message' | 'tool') => ({ schema, class: 'coalesced', key }) as const;
const live = <S extends TSchema>(schema: S) => ({ schema, class: 'live' }) as const;
const response = <S extends TSchema>(schema: S) => ({ schema, class: 'response' }) as const;
const kept = <S extends TSchema>(schema: S, turn: AgentUpRow['turn'] = 'required') => ({ schema, durable: true, turn }) as const;
const passing = <S extends TSchema>(schema: S, turn: AgentUpRow['turn'] = 'required') => ({ schema, durable: false, turn }) as const;
const told = <S extends TSchema>(schema: S) => ({ schema, durable: true }) as const;
const said = <S extends TSchema>(schema: S) => ({ schema, durable: false }) as const;

/**
 * The one list of frame types. Routing, validation, backpressure, the outbox, deadlines, metrics, the AsyncAPI document
 * and the tests read it; there is no second list anywhere.
 */
export const frameTable = {
  hello: { up: change(connection.Hello, 'hello.ack'), agent_up: passing(link.AgentHello, 'none'), rules: ['HEL'] },
  'hello.ack': { down: response(connection.HelloAck), agent_down: said(link.AgentHelloAck), rules: ['HEL'] },
  status: { down: live(connection.Status), rules: ['HEL'] },
  ping: {
    up: { ...local(connection.Ping, 'pong'), refine: connection.refinePing },
    agent_up: passing(connection.Ping, 'none'),
    agent_down: said(connection.Ping),
    rules: ['KEE'],
  },
  pong: { down: response(connection.Pong), agent_up: passing(connection.Ping, 'none'), agent_down: said(connection.Pong), rules: ['KEE'] },
  ack: {
    up: local(connection.AckUp, 'ack'),
    down: response(connection.AckDown),
    agent_up: passing(link.AgentAck, 'none'),
    agent_down: said(Empty),
    rules: ['CAP'],
  },
  error: { down: response(connection.ErrorPayload), agent_down: said(connection.ErrorPayload), rules: ['ERR'] },
  'fcm.register': { up: change(connection.FcmRegister, 'ack'), rules: ['PSH'] },
  sync: { up: local(connection.Sync, 'sync.done'), rules: ['SYN'] },
  'sync.done': { down: response(connection.SyncDone), rules: ['SYN'] },

  'message.send': {
    up: { ...change(message.MessageSend, 'message', 'lane_or_default'), pipelined: true, refine: message.refineMessageSend },
    rules: ['MSG'],
  },
  message: { down: durable(message.Message, { push: 'final' }), agent_up: kept(link.AgentMessage, 'optional'), rules: ['MSG'] },
  'message.start': { down: durable(message.MessageStart), agent_up: kept(message.MessageStart), rules: ['STR'] },
  'message.update': { down: coalesced(message.MessageUpdate, 'message'), agent_up: passing(message.MessageUpdate), rules: ['STR'] },
  'message.delta': { down: coalesced(message.MessageDelta, 'message'), agent_up: passing(message.MessageDelta), rules: ['STR', 'CAP'] },
  'reasoning.delta': {
    down: coalesced(message.ReasoningDelta, 'message'),
    agent_up: passing(message.ReasoningDelta),
    rules: ['STR', 'CAP'],
  },
  'message.stop': { down: durable(message.MessageStop, { push: 'final' }), agent_up: kept(message.MessageStop), rules: ['STR'] },
  'message.delete': {
    up: change(message.MessageDelete, 'message.deleted', 'lane'),
    agent_up: kept(link.AgentMessageDelete, 'optional'),
    rules: ['DEL'],
  },
  'message.deleted': { down: durable(message.MessageDeleted), agent_down: told(message.MessageDeleted), rules: ['DEL'] },
  commentary: { down: durable(message.Commentary), agent_up: kept(message.Commentary, 'optional'), rules: ['STR'] },
  'read.receipt': {
    up: change(message.ReadReceiptUp, 'ack', 'lane'),
    down: durable(message.ReadReceiptDown, { key: 'lane_receipt' }),
    rules: ['RCP'],
  },

  'tool.start': { down: durable(tool.ToolStart), agent_up: kept(tool.ToolStart), rules: ['TOO'] },
  'tool.progress': { down: coalesced(tool.ToolProgress, 'tool'), agent_up: passing(tool.ToolProgress), rules: ['TOO'] },
  'tool.end': { down: durable(tool.ToolEnd), agent_up: kept(tool.ToolEnd), rules: ['TOO'] },

  typing: { down: live(agent.Typing), agent_up: passing(agent.Typing, 'optional'), rules: ['TYP'] },
  'typing.stop': { down: live(Empty), agent_up: passing(Empty, 'optional'), rules: ['TYP'] },
  'agent.busy': { down: durable(agent.AgentBusy, { key: 'lane_activity' }), agent_up: kept(agent.AgentBusy), rules: ['TRN'] },
  'agent.idle': { down: durable(Empty, { key: 'lane_activity' }), rules: ['TRN'] },
  'agent.stop': { up: change(Empty, 'ack', 'lane'), agent_down: told(Empty), rules: ['STO'] },
  'agent.steer': {
    up: { ...change(agent.AgentSteer, 'ack', 'lane'), refine: agent.refineAgentSteer },
    agent_down: told(link.AgentSteerDown),
    agent_up: passing(link.AgentSteerUp, 'optional'),
    rules: ['STE'],
  },
  notification: { down: durable(agent.Notification, { push: 'always' }), agent_up: kept(agent.Notification, 'optional'), rules: ['NOT'] },

  'picker.model': {
    down: durable(picker.PickerModel, { key: 'picker', push: 'always' }),
    agent_up: kept(picker.PickerModel, 'optional'),
    rules: ['PIC'],
  },
  'picker.choice': {
    down: durable(picker.PickerChoice, { key: 'picker', push: 'always' }),
    agent_up: kept(picker.PickerChoice, 'optional'),
    rules: ['PIC'],
  },
  'picker.clarify': {
    down: durable(picker.PickerClarify, { key: 'picker', push: 'always' }),
    agent_up: kept(picker.PickerClarify, 'optional'),
    rules: ['PIC'],
  },
  'picker.approval': {
    down: durable(picker.PickerApproval, { key: 'picker', push: 'always' }),
    agent_up: kept(picker.PickerApproval, 'optional'),
    rules: ['PIC'],
  },
  'picker.confirm': {
    down: durable(picker.PickerConfirm, { key: 'picker', push: 'always' }),
    agent_up: kept(picker.PickerConfirm, 'optional'),
    rules: ['PIC'],
  },
  'picker.select': {
    up: { ...change(picker.PickerSelect, 'ack'), refine: picker.refinePickerSelect },
    agent_down: told(picker.PickerSelect),
    rules: ['PIC'],
  },
  'picker.closed': {
    down: durable(picker.PickerClosed, { key: 'picker' }),
    agent_up: kept(link.AgentPickerClosedUp, 'optional'),
    agent_down: told(link.AgentPickerClosedDown),
    rules: ['PIC'],
  },

  'channel.create': { up: change(channel.ChannelCreate, 'channel.created'), agent_up: kept(channel.ChannelCreate, 'none'), rules: ['CHA'] },
  'channel.rename': {
    up: change(channel.ChannelRename, 'channel.renamed', 'lane'),
    agent_up: kept(channel.ChannelRename, 'optional'),
    rules: ['CHA'],
  },
  'channel.set_default': { up: change(channel.ChannelSetDefault, 'channel.list', 'lane'), rules: ['CHA'] },
  'channel.delete': { up: change(channel.ChannelDelete, 'channel.deleted', 'lane'), rules: ['CHA'] },
  'channel.list': { down: durable(channel.ChannelList), rules: ['CHA'] },
  'channel.created': { down: durable(channel.ChannelCreated), agent_down: told(channel.ChannelCreated), rules: ['CHA'] },
  'channel.renamed': { down: durable(channel.ChannelRenamed), agent_down: told(channel.ChannelRenamed), rules: ['CHA'] },
  'channel.deleted': { down: durable(channel.ChannelDeleted), agent_down: told(channel.ChannelDeleted), rules: ['CHA'] },

  history: {
    up: ask(history.HistoryUp, 'history', 'lane'),
    down: response(history.HistoryDown),
    agent_up: passing(history.HistoryUp, 'optional'),
    agent_down: said(history.HistoryDown),
    rules: ['HIS'],
  },
  search: {
    up: { ...ask(history.Search, 'search.results', 'lane_or_all'), refine: history.refineSearch },
    agent_up: { ...passing(history.Search, 'optional'), refine: history.refineSearch },
    rules: ['SEA'],
  },
  'search.results': { down: response(history.SearchResults), agent_down: said(history.SearchResults), rules: ['SEA'] },
  'commands.catalog': {
    up: ask(Empty, 'commands.catalog'),
    down: response(history.CommandsCatalogDown),
    agent_up: kept(link.CommandsCatalogUp, 'none'),
    agent_down: said(Empty),
    rules: ['CMD'],
  },
  'commands.complete': {
    up: ask(history.CommandsCompleteUp, 'commands.complete'),
    down: response(history.CommandsCompleteDown),
    rules: ['CMD'],
  },

  'media.upload.start': { up: { ...local(media.MediaUploadStart, null), refine: media.refineMediaUploadStart }, rules: ['UPL'] },
  'media.upload.end': { up: local(media.MediaUploadEnd, 'media.upload.ack', 30_000), rules: ['UPL'] },
  'media.upload.ack': { down: response(media.MediaUploadAck), rules: ['UPL'] },
  'media.offer': { down: durable(media.MediaOffer), agent_up: kept(media.MediaOffer, 'optional'), rules: ['UPL'] },
  'media.pull': { up: local(media.MediaPull, 'media.pull.end'), rules: ['PUL'] },
  'media.pull.ack': { down: response(media.MediaPullAck), rules: ['PUL'] },
  'media.pull.end': { down: response(media.MediaPullEnd), rules: ['PUL'] },

  'turn.start': { agent_down: told(link.TurnStart), rules: ['LNK'] },
  'turn.accepted': { agent_up: kept(Empty), rules: ['LNK'] },
  'turn.end': { agent_up: kept(link.TurnEnd), rules: ['LNK'] },
  'turn.snapshot': { agent_up: kept(link.TurnSnapshot), rules: ['LNK'] },
  drain: { agent_down: said(link.Drain), rules: ['LNK'] },
  'media.request': { agent_up: passing(link.MediaRequest, 'none'), rules: ['LNK'] },
  'media.grant': { agent_down: said(link.MediaGrant), rules: ['LNK'] },
} as const satisfies Record<string, FrameRow>;

export type FrameTable = typeof frameTable;
export type FrameType = keyof FrameTable;
type With<Side extends keyof FrameRow> = { [T in FrameType]: FrameTable[T] extends { [S in Side]: unknown } ? T : never }[FrameType];
export type UpType = With<'up'>;
export type DownType = With<'down'>;
export type AgentUpType = With<'agent_up'>;
export type AgentDownType = With<'agent_down'>;
type SchemaOf<T extends FrameType, Side extends keyof FrameRow> = FrameTable[T] extends {
  [S in Side]: { schema: infer Schema extends TSchema };
}
  ? Static<Schema>
  : never;
export type UpPayload<T extends UpType> = SchemaOf<T, 'up'>;
export type DownPayload<T extends DownType> = SchemaOf<T, 'down'>;
export type AgentUpPayload<T extends AgentUpType> = SchemaOf<T, 'agent_up'>;
export type AgentDownPayload<T extends AgentDownType> = SchemaOf<T, 'agent_down'>;

const rows: ReadonlyMap<string, FrameRow> = new Map(Object.entries(frameTable));
/** The row of a type as it came from a peer; undefined for types this version does not know. A `Map`, so `constructor` is not a type. */
export const rowOf = (type: string): FrameRow | undefined => rows.get(type);
export const frameTypes = Object.keys(frameTable) as readonly FrameType[];

/** The protocol's major version; `v` absent means 1. */
export const protocolVersion = 1;
