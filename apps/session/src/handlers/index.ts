import type { UpType } from '@iris/protocol';
import type { DeviceHandler } from '../context.js';
import { agentSteer } from './agent-steer.js';
import { agentStop } from './agent-stop.js';
import { channelCreate } from './channel-create.js';
import { channelDelete } from './channel-delete.js';
import { channelRename } from './channel-rename.js';
import { channelSetDefault } from './channel-set-default.js';
import { commandsCatalog } from './commands-catalog.js';
import { commandsComplete } from './commands-complete.js';
import { fcmRegister } from './fcm-register.js';
import { hello } from './hello.js';
import { history } from './history.js';
import { messageDelete } from './message-delete.js';
import { messageSend } from './message-send.js';
import { pickerSelect } from './picker-select.js';
import { pushMute } from './push-mute.js';
import { readReceipt } from './read-receipt.js';
import { search } from './search.js';

/** One handler per type that the session answers; the others are the edge's. */
const handlers = {
  hello,
  'message.send': messageSend,
  'message.delete': messageDelete,
  'read.receipt': readReceipt,
  history,
  search,
  'channel.create': channelCreate,
  'channel.rename': channelRename,
  'channel.set_default': channelSetDefault,
  'channel.delete': channelDelete,
  'agent.stop': agentStop,
  'agent.steer': agentSteer,
  'picker.select': pickerSelect,
  'commands.catalog': commandsCatalog,
  'commands.complete': commandsComplete,
  'fcm.register': fcmRegister,
  'push.mute': pushMute,
} satisfies { readonly [T in UpType]?: DeviceHandler<T> };

type AnyHandler = DeviceHandler<UpType>;
const table: ReadonlyMap<string, AnyHandler> = new Map(Object.entries(handlers) as unknown as [string, AnyHandler][]);

export const deviceHandler = (type: string): AnyHandler | undefined => table.get(type);
export const handledTypes: readonly string[] = [...table.keys()];
