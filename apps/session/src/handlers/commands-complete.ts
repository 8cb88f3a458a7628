import type { DeviceHandler } from '../context.js';
import { completions } from '../rules/command.js';
import { catalogOf, commandEntry } from './commands-catalog.js';

export const commandsComplete: DeviceHandler<'commands.complete'> = async ({ tenant_id, frame }, context) => {
  const { prefix } = frame.payload;
  const matches = completions(prefix, await catalogOf(tenant_id, frame, context)).map(commandEntry);
  return { kind: 'frame', frame: { type: 'commands.complete', payload: { prefix, matches } } };
};
