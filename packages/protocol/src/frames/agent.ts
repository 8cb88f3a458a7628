import { type Static, Type } from 'typebox';
import { refineText } from './message.js';
import { Timestamp } from './shared.js';

export const Typing = Type.Object({ on: Type.Boolean() });
export const AgentBusy = Type.Object({
  reason: Type.Enum(['processing', 'tool', 'waiting_input', 'cron']),
});
export const AgentSteer = Type.Object({ text: Type.String() });
export const refineAgentSteer = ({ text }: Static<typeof AgentSteer>): string | undefined =>
  text.trim() === '' ? 'text: must not be blank' : refineText({ text });

export const Notification = Type.Object({
  kind: Type.Enum(['channel_renamed', 'channel_created', 'cron', 'approval', 'clarify', 'generic']),
  title: Type.String(),
  body: Type.String(),
  ts: Timestamp,
});
