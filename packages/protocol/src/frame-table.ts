import type { Static, TSchema } from 'typebox';
import type { AgentUpRow, DownRow, FrameRow, UpRow } from './frame-row.js';
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
  hello: {
    up: change(connection.Hello, 'hello.ack'),
    agent_up: passing(link.AgentHello, 'none'),
    rules: ['HEL2', 'HEL3', 'HEL4', 'HEL8', 'HEL9', 'HEL10', 'HEL11', 'HEL12', 'HEL13', 'HEL14', 'LNK12', 'LNK13'],
  },
  'hello.ack': {
    down: response(connection.HelloAck),
    agent_down: said(link.AgentHelloAck),
    rules: ['HEL16', 'HEL17', 'HEL18', 'HEL19', 'HEL20', 'LNK14', 'LNK15'],
  },
  status: { down: live(connection.Status), rules: ['HEL21', 'HEL26', 'HEL27'] },
  ping: {
    up: { ...local(connection.Ping, 'pong'), refine: connection.refinePing },
    agent_up: passing(connection.Ping, 'none'),
    agent_down: said(connection.Ping),
    rules: ['KEE1', 'KEE2', 'KEE3'],
  },
  pong: { down: response(connection.Pong), agent_up: passing(connection.Ping, 'none'), agent_down: said(connection.Pong), rules: ['KEE1'] },
  ack: {
    up: local(connection.AckUp, 'ack'),
    down: response(connection.AckDown),
    agent_up: passing(link.AgentAck, 'none'),
    agent_down: said(Empty),
    rules: ['CAP3', 'CAP4', 'LNK6'],
  },
  error: {
    down: response(connection.ErrorPayload),
    agent_down: said(connection.ErrorPayload),
    rules: ['ERR1', 'ERR2', 'ERR3', 'ERR4', 'ERR5', 'LNK45'],
  },
  'fcm.register': { up: change(connection.FcmRegister, 'ack'), rules: ['PSH1', 'PSH5'] },
  'push.mute': { up: { ...change(connection.PushMute, 'ack', 'lane_or_all'), refine: connection.refinePushMute }, rules: ['PSH13'] },
  sync: { up: local(connection.Sync, 'sync.done'), rules: ['SYN1', 'SYN2', 'SYN3', 'SYN4'] },
  'sync.done': { down: response(connection.SyncDone), rules: ['SYN1', 'SYN8', 'SYN9', 'SYN10'] },

  'message.send': {
    up: { ...change(message.MessageSend, 'message', 'lane_or_default'), pipelined: true, refine: message.refineMessageSend },
    rules: ['MSG1', 'MSG2', 'MSG3', 'MSG4', 'MSG5', 'MSG12', 'MSG14', 'MSG15', 'LIM2', 'LIM6'],
  },
  message: {
    down: durable(message.Message, { push: 'final' }),
    agent_up: kept(link.AgentMessage, 'optional'),
    rules: ['MSG1', 'MSG6', 'MSG7', 'MSG8', 'MSG9', 'MSG10', 'MSG11', 'STR8', 'LNK27'],
  },
  'message.start': { down: durable(message.MessageStart), agent_up: kept(message.MessageStart), rules: ['STR1'] },
  'message.update': {
    down: coalesced(message.MessageUpdate, 'message'),
    agent_up: passing(message.MessageUpdate),
    rules: ['STR2', 'STR4', 'STR6', 'STR9', 'ORD4'],
  },
  'message.delta': {
    down: coalesced(message.MessageDelta, 'message'),
    agent_up: passing(message.MessageDelta),
    rules: ['CAP7', 'CAP8', 'CAP9', 'LNK23'],
  },
  'reasoning.delta': {
    down: coalesced(message.ReasoningDelta, 'message'),
    agent_up: passing(message.ReasoningDelta),
    rules: ['CAP10', 'LNK24'],
  },
  'message.stop': {
    down: durable(message.MessageStop, { push: 'final' }),
    agent_up: kept(message.MessageStop),
    rules: ['STR1', 'STR3', 'STR5', 'STR6', 'STR7'],
  },
  'message.delete': {
    up: change(message.MessageDelete, 'message.deleted', 'lane'),
    agent_up: kept(link.AgentMessageDelete, 'optional'),
    rules: ['DEL1', 'DEL2', 'DEL3', 'DEL4', 'DEL5', 'DEL7', 'LNK44'],
  },
  'message.deleted': {
    down: durable(message.MessageDeleted),
    agent_down: told(link.AgentMessageDeleted),
    rules: ['DEL1', 'DEL5', 'DEL6', 'LNK41'],
  },
  commentary: { down: durable(message.Commentary), agent_up: kept(message.Commentary, 'optional'), rules: ['MSG18'] },
  'read.receipt': {
    up: { ...change(message.ReadReceiptUp, 'ack', 'lane'), pipelined: true },
    down: durable(message.ReadReceiptDown, { key: 'lane_receipt' }),
    rules: ['RCP1', 'RCP2', 'RCP3', 'RCP4', 'RCP5', 'RCP6'],
  },

  'tool.start': { down: durable(tool.ToolStart), agent_up: kept(tool.ToolStart), rules: ['TOO1', 'TOO2'] },
  'tool.progress': { down: coalesced(tool.ToolProgress, 'tool'), agent_up: passing(tool.ToolProgress), rules: ['TOO1', 'OUT4'] },
  'tool.end': { down: durable(tool.ToolEnd), agent_up: kept(tool.ToolEnd), rules: ['TOO1', 'TOO2', 'TOO3'] },

  typing: { down: live(agent.Typing), agent_up: passing(agent.Typing, 'optional'), rules: ['TYP1', 'TYP2'] },
  'typing.stop': { down: live(Empty), agent_up: passing(Empty, 'optional'), rules: ['TYP1'] },
  'agent.busy': { down: durable(agent.AgentBusy, { key: 'lane_activity' }), agent_up: kept(agent.AgentBusy), rules: ['TRN1', 'TRN2'] },
  'agent.idle': { down: durable(Empty, { key: 'lane_activity' }), rules: ['TRN1', 'TRN3', 'TRN4'] },
  'agent.stop': { up: change(Empty, 'ack', 'lane'), agent_down: told(Empty), rules: ['STO1', 'STO2', 'STO3', 'LNK21'] },
  'agent.steer': {
    up: { ...change(agent.AgentSteer, 'ack', 'lane'), refine: agent.refineAgentSteer },
    agent_down: told(link.AgentSteerDown),
    agent_up: passing(link.AgentSteerUp, 'optional'),
    rules: ['STE1', 'STE2', 'STE3', 'STE4', 'LNK22'],
  },
  notification: {
    down: durable(agent.Notification, { push: 'always' }),
    agent_up: kept(agent.Notification, 'optional'),
    rules: ['NOT1', 'NOT2', 'NOT3'],
  },

  'picker.model': {
    down: durable(picker.PickerModel, { key: 'picker', push: 'always' }),
    agent_up: kept(picker.PickerModel, 'optional'),
    rules: ['PIC1', 'PIC2', 'PIC3', 'PIC6'],
  },
  'picker.choice': {
    down: durable(picker.PickerChoice, { key: 'picker', push: 'always' }),
    agent_up: kept(picker.PickerChoice, 'optional'),
    rules: ['PIC1', 'PIC2', 'PIC3', 'PIC4'],
  },
  'picker.clarify': {
    down: durable(picker.PickerClarify, { key: 'picker', push: 'always' }),
    agent_up: kept(picker.PickerClarify, 'optional'),
    rules: ['PIC1', 'PIC2', 'PIC3', 'PIC5', 'NOT3', 'LNK30'],
  },
  'picker.approval': {
    down: durable(picker.PickerApproval, { key: 'picker', push: 'always' }),
    agent_up: kept(picker.PickerApproval, 'optional'),
    rules: ['PIC1', 'PIC2', 'PIC3', 'PIC4', 'NOT3'],
  },
  'picker.confirm': {
    down: durable(picker.PickerConfirm, { key: 'picker', push: 'always' }),
    agent_up: kept(picker.PickerConfirm, 'optional'),
    rules: ['PIC1', 'PIC2', 'PIC3', 'PIC4'],
  },
  'picker.select': {
    up: { ...change(picker.PickerSelect, 'ack'), refine: picker.refinePickerSelect },
    agent_down: told(picker.PickerSelect),
    rules: ['PIC8', 'PIC9', 'PIC13', 'PIC14', 'PIC15', 'LNK42'],
  },
  'picker.closed': {
    down: durable(picker.PickerClosed, { key: 'picker' }),
    agent_up: kept(link.AgentPickerClosedUp, 'optional'),
    agent_down: told(link.AgentPickerClosedDown),
    rules: ['PIC10', 'PIC11', 'PIC12', 'PIC16', 'LNK43'],
  },

  'channel.create': {
    up: change(channel.ChannelCreate, 'channel.created'),
    agent_up: kept(channel.ChannelCreate, 'none'),
    rules: ['CHA2', 'CHA4', 'CHA10', 'LIM11', 'LNK44'],
  },
  'channel.rename': {
    up: change(channel.ChannelRename, 'channel.renamed', 'lane'),
    agent_up: kept(channel.ChannelRename, 'optional'),
    rules: ['CHA5', 'CHA10', 'CHA11', 'CHA13', 'LNK44'],
  },
  'channel.set_default': { up: change(channel.ChannelSetDefault, 'channel.list', 'lane'), rules: ['CHA6', 'CHA13'] },
  'channel.delete': { up: change(channel.ChannelDelete, 'channel.deleted', 'lane'), rules: ['CHA7', 'CHA8', 'CHA9', 'CHA13', 'CHA14'] },
  'channel.list': { down: durable(channel.ChannelList), rules: ['CHA6', 'CHA12'] },
  'channel.created': {
    down: durable(channel.ChannelCreated),
    agent_down: told(channel.ChannelCreated),
    rules: ['CHA3', 'CHA4', 'CHA12', 'MSG16', 'LNK41'],
  },
  'channel.renamed': {
    down: durable(channel.ChannelRenamed),
    agent_down: told(channel.ChannelRenamed),
    rules: ['CHA5', 'CHA12', 'MSG17', 'LNK41'],
  },
  'channel.deleted': { down: durable(channel.ChannelDeleted), agent_down: told(channel.ChannelDeleted), rules: ['CHA7', 'CHA12', 'LNK41'] },

  history: {
    up: ask(history.HistoryUp, 'history', 'lane'),
    down: response(history.HistoryDown),
    agent_up: passing(history.HistoryUp, 'optional'),
    agent_down: said(history.HistoryDown),
    rules: ['HIS1', 'HIS2', 'HIS3', 'HIS4', 'HIS5', 'HIS6', 'HIS7', 'HIS8', 'LNK39'],
  },
  search: {
    up: { ...ask(history.Search, 'search.results', 'lane_or_all'), refine: history.refineSearch },
    agent_up: { ...passing(history.Search, 'optional'), refine: history.refineSearch },
    rules: ['SEA1', 'SEA2', 'SEA5', 'SEA6', 'LNK39'],
  },
  'search.results': { down: response(history.SearchResults), agent_down: said(history.SearchResults), rules: ['SEA3', 'SEA4'] },
  'commands.catalog': {
    up: ask(Empty, 'commands.catalog', 'lane_or_all'),
    down: response(history.CommandsCatalogDown),
    agent_up: kept(link.CommandsCatalogUp, 'none'),
    agent_down: said(Empty),
    rules: ['CMD1', 'CMD2', 'LNK38'],
  },
  'commands.complete': {
    up: ask(history.CommandsCompleteUp, 'commands.complete', 'lane_or_all'),
    down: response(history.CommandsCompleteDown),
    rules: ['CMD3'],
  },

  'media.upload.start': {
    up: { ...local(media.MediaUploadStart, 'media.upload.start'), refine: media.refineMediaUploadStart },
    down: response(media.MediaUploadOffset),
    rules: ['UPL1', 'UPL2', 'UPL3', 'UPL4', 'UPL5', 'UPL6', 'UPL9', 'UPL10', 'UPL11', 'UPL14', 'UPL15', 'UPL17'],
  },
  'media.upload.end': { up: local(media.MediaUploadEnd, 'media.upload.ack', 30_000), rules: ['UPL1', 'UPL2', 'UPL7', 'UPL8', 'UPL16'] },
  'media.upload.ack': { down: response(media.MediaUploadAck), rules: ['UPL1', 'UPL8'] },
  'media.offer': { down: durable(media.MediaOffer), agent_up: kept(media.MediaOffer, 'optional'), rules: ['UPL12', 'UPL13'] },
  'media.pull': { up: local(media.MediaPull, 'media.pull.end'), rules: ['PUL1', 'PUL3', 'PUL4', 'PUL5'] },
  'media.pull.ack': { down: response(media.MediaPullAck), rules: ['PUL1'] },
  'media.pull.end': { down: response(media.MediaPullEnd), rules: ['PUL1', 'PUL2'] },

  'turn.start': { agent_down: told(link.TurnStart), rules: ['LNK18', 'LNK29', 'LNK33'] },
  'turn.accepted': { agent_up: kept(Empty), rules: ['LNK19'] },
  'turn.end': { agent_up: kept(link.TurnEnd), rules: ['LNK20', 'LNK27'] },
  'turn.snapshot': { agent_up: kept(link.TurnSnapshot), rules: ['LNK15', 'LNK35'] },
  drain: { agent_down: said(link.Drain), rules: ['LNK37'] },
  'media.request': { agent_up: passing(link.MediaRequest, 'none'), rules: ['LNK40'] },
  'media.grant': { agent_down: said(link.MediaGrant), rules: ['LNK40'] },
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
