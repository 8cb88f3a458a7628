import type { AgentUpFrame, AgentUpType } from '@iris/protocol';
import type { AgentEffects, AgentRequest, Context } from '../context.js';
import { channelCreate, channelRename } from './channel-frames.js';
import { commentary, message, messageDelete, messageStart, messageStop } from './message-frames.js';
import { pickerClosedByAgent, pickerOpen } from './picker-frames.js';
import { agentCatalog, agentSteer } from './request-frames.js';
import { mediaOffer, notification, toolEnd, toolStart } from './tool-frames.js';
import { agentBusy, turnAccepted, turnEnd, turnSnapshot } from './turn-frames.js';

type Handlers = {
  readonly [T in AgentUpType]?: (
    request: AgentRequest & { readonly frame: Extract<AgentUpFrame, { type: T }> },
    context: Context,
  ) => Promise<AgentEffects>;
};

/** Agents' frames that have an effect, each run in its place in the tenant's order. */
const handlers = {
  'turn.accepted': turnAccepted,
  'agent.busy': agentBusy,
  'turn.end': turnEnd,
  'turn.snapshot': turnSnapshot,
  'message.start': messageStart,
  'message.stop': messageStop,
  message,
  commentary,
  'message.delete': messageDelete,
  'tool.start': toolStart,
  'tool.end': toolEnd,
  'media.offer': mediaOffer,
  notification,
  'picker.model': pickerOpen,
  'picker.choice': pickerOpen,
  'picker.clarify': pickerOpen,
  'picker.approval': pickerOpen,
  'picker.confirm': pickerOpen,
  'picker.closed': pickerClosedByAgent,
  'channel.create': channelCreate,
  'channel.rename': channelRename,
  'commands.catalog': agentCatalog,
  'agent.steer': agentSteer,
} satisfies Handlers;

type AnyHandler = (request: AgentRequest, context: Context) => Promise<AgentEffects>;
const table: ReadonlyMap<string, AnyHandler> = new Map(Object.entries(handlers) as unknown as [string, AnyHandler][]);

export const agentFrameHandler = (type: string): AnyHandler | undefined => table.get(type);
