import { laneOf, type TestDevice, type TestTurn } from '@iris/testkit';
import type { Model } from './model.js';
import type { Real } from './stage.js';
import { viewOf } from './view.js';

/** This message is this device's: its receipt goes there and nowhere else. */
export function sent(model: Model, device: TestDevice, message_id: string, lane: string, text: string): void {
  model.senders.set(message_id, { device_id: device.device_id, lane, text });
}

/** The agent takes the turn: its sender is told, on the connection that it has or on its next one. One whose connection vanished may miss it. */
export function taken(model: Model, turn: TestTurn): void {
  const { message_id } = turn.offer.message as unknown as { message_id: string };
  model.taken.add(message_id);
  // A send whose answer was lost: the agent has it before its sender knows its name.
  const unsure = [...model.unsure].find(([, { text }]) => text === turn.text);
  if (unsure) model.senders.set(message_id, { device_id: unsure[0], lane: laneOf(turn), text: turn.text });
  owe(model, message_id);
}

/** Texts that running turns took. */
export function takenSteers(real: Real, model: Model): void {
  const texts = new Set([...real.agent.turns.values()].flatMap(({ steers }) => [...steers]));
  for (const [message_id, { text }] of model.senders) if (texts.has(text)) model.taken.add(message_id);
}

export function owe(model: Model, message_id: string): void {
  const sender = model.senders.get(message_id);
  if (sender !== undefined && isSaid(model, message_id) && !model.vanished.has(sender.device_id))
    model.owed.set(message_id, sender.device_id);
}

const isSaid = (model: Model, message_id: string): boolean =>
  [...model.lanes.values()].some(({ said }) => said.some((one) => one.message_id === message_id));

/** Who sent it hears that the agent has it: not before, once, in its lane, and nobody else. */
export function checkReceipts(real: Real, model: Model): void {
  takenSteers(real, model);
  for (const device of real.devices.filter(({ connected }) => connected)) {
    const { receipts } = viewOf(device);
    const wrong = (why: string, message_id: string) => {
      throw new Error(`RCP1: ${device.device_id} is told that the agent has ${message_id}, ${why}`);
    };
    for (const [message_id, lanes] of receipts) {
      const sender = model.senders.get(message_id);
      if (sender?.device_id !== device.device_id) wrong(`which ${sender?.device_id ?? 'nobody'} sent`, message_id);
      if (!model.taken.has(message_id)) wrong('which it has not', message_id);
      if (lanes.some((lane) => lane !== sender?.lane)) wrong(`in ${lanes.join(', ')} instead of ${sender?.lane}`, message_id);
      if (lanes.length > 1) wrong(`${lanes.length} times`, message_id);
    }
    for (const [message_id, device_id] of model.owed)
      if (device_id === device.device_id && isSaid(model, message_id) && !receipts.has(message_id))
        throw new Error(`RCP1 RCP2: ${device_id} is not told that the agent has ${message_id}`);
  }
}
