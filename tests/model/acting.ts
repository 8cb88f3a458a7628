/** What all commands are made of. */
import type { AnyFrame, TestDevice } from '@iris/testkit';
import fc from 'fast-check';
import { type Model, type ModelLane, say, words } from './model.js';
import { sent } from './receipts.js';
import { come, type Real, saidAs } from './stage.js';

export type Act = fc.AsyncCommand<Model, Real>;

export type Deed = (model: Model, real: Real, dice: readonly number[]) => Promise<void>;

/** A command is a name and some numbers, by which it chooses among what there is when it runs; where there is nothing, it does nothing. */
export const act = (name: string, run: Deed): fc.Arbitrary<Act> =>
  fc.tuple(fc.nat(99), fc.nat(99), fc.nat(99)).map((dice) => ({
    check: () => true,
    run: (model, real) => run(model, real, dice),
    toString: () => `${name}(${dice.join(', ')})`,
  }));

export const pick = <T>(list: readonly T[], n: number): T | undefined => list[n % Math.max(1, list.length)];
export const online = ({ devices }: Real) => devices.filter(({ connected }) => connected);
export const lanesOf = ({ lanes }: Model) => [...lanes.values()];
export const scopeOf = ({ chat_id, thread_id }: ModelLane) => ({ chat_id, thread_id });
export const textOf = (real: Real, n: number) => `${words[n % words.length]} ${words[(n >> 2) % words.length]} ${real.next()}`;

export function expectType(answer: AnyFrame, type: string): AnyFrame {
  if (answer.type !== type) throw new Error(`answered by ${answer.type} ${JSON.stringify(answer.payload)}, not ${type}`);
  return answer;
}

/** What the log has under this text, which somebody was told is there. */
export function note(model: Model, real: Real, lane: string, text: string, by?: TestDevice): void {
  const said = saidAs(real, text);
  if (said === undefined) throw new Error(`${text} is not in the outbox`);
  say(model, lane, said);
  if (by !== undefined) sent(model, by, said.message_id, lane, text);
}

export function cut(model: Model, device: TestDevice, silent: boolean): void {
  device.cut({ silent });
  if (silent) model.vanished.add(device.device_id);
}

export async function back(model: Model, real: Real, device: TestDevice, door: number): Promise<void> {
  await come(real, model, device, door);
  const unsure = model.unsure.get(device.device_id);
  if (!unsure) return;
  const lane = model.lanes.get(unsure.lane);
  if (lane) {
    const { client_ref, text } = unsure;
    expectType(await device.send(text, { ...scopeOf(lane), client_ref }), 'message');
    note(model, real, unsure.lane, text, device);
  }
  model.unsure.delete(device.device_id);
}
