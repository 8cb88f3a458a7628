import { type DeviceHandler, ok } from '../context.js';
import { laneIn } from './lookup.js';

/** With nothing running it is answered, and nothing else happens. */
export const agentStop: DeviceHandler<'agent.stop'> = async ({ tenant_id, deadline, frame }, context) => {
  await context.turns.stop(tenant_id, await laneIn(tenant_id, frame, context), deadline);
  return ok;
};
