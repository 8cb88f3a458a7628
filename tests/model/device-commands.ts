/** What people do. */
import { laneOf } from '@iris/testkit';
import { act, back, cut, expectType, lanesOf, note, online, pick, scopeOf, textOf } from './acting.js';
import { finish, take } from './agent-commands.js';
import { keyOf, read } from './model.js';
import { owe, takenSteers } from './receipts.js';
import { quiet, type Real, runningTurns } from './stage.js';

export const send = act('send', async (model, real, [d, l, t]) => {
  const device = pick(online(real), d!);
  const lane = pick(lanesOf(model), l!);
  if (!device || !lane) return;
  const text = textOf(real, t!);
  const echo = expectType(await device.send(text, scopeOf(lane)), 'message');
  note(model, real, laneOf(echo), text, device);
});

export const sendTogether = act('send together', async (model, real, [d, l, t]) => {
  const lane = pick(lanesOf(model), l!);
  if (!lane) return;
  const texts = online(real).flatMap((device) => [1, 2].map(() => ({ device, text: textOf(real, t! + d!) })));
  const answers = await Promise.all(texts.map(({ device, text }) => device.send(text, scopeOf(lane))));
  for (const answer of answers) expectType(answer, 'message');
  for (const { device, text } of texts) note(model, real, keyOf(lane), text, device);
});

/** The answer is lost with the connection; when the device is back it asks again, and what was said is said once. */
export const sendAndCut = act('send and cut', async (model, real, [d, l, t]) => {
  const device = pick(online(real), d!);
  const lane = pick(lanesOf(model), l!);
  if (!device || !lane || model.unsure.has(device.device_id)) return;
  const text = textOf(real, t!);
  const client_ref = `ref ${real.next()}`;
  model.unsure.set(device.device_id, { client_ref, text, lane: keyOf(lane) });
  device.send(text, { ...scopeOf(lane), client_ref }).catch(() => {});
  await real.world.advance(t! % 4);
  cut(model, device, t! % 2 === 0);
  await real.world.advance(20);
  // Whoever had it in memory that this was said may be gone by then.
  if (t! % 3 === 0) await replaceSessions(real);
});

export async function replaceSessions({ world }: Real): Promise<void> {
  for (const member of world.sessions) member.kill();
  for (let n = 0; n < 2; n++) await world.startSession();
}

export const leave = act('leave', async (model, real, [d, how]) => {
  const device = pick(online(real), d!);
  if (device) cut(model, device, how! % 3 === 0);
  await real.world.advance(10);
});

export const comeBack = act('come back', async (model, real, [d, door]) => {
  const device = pick(
    real.devices.filter(({ connected }) => !connected),
    d!,
  );
  if (device) await back(model, real, device, door!);
});

/** It comes back before the gateway has noticed that it went. */
export const replaced = act('dial again', async (model, real, [d, door]) => {
  const device = pick(online(real), d!);
  if (device) await back(model, real, device, door!);
});

export const deleteMessages = act('delete messages', async (model, real, [d, l, m]) => {
  const device = pick(online(real), d!);
  const lane = pick(
    lanesOf(model).filter(({ said }) => said.length > 0),
    l!,
  );
  if (!device || !lane) return;
  const gone = [pick(lane.said, m!)!, pick(lane.said, m! * 7)!].map(({ message_id }) => message_id);
  const answer = expectType(await device.request('message.delete', { message_ids: gone }, scopeOf(lane)), 'message.deleted');
  if (new Set(answer.payload.message_ids).size !== new Set(gone).size) throw new Error('DEL1: other ids are listed');
  lane.said = lane.said.filter(({ message_id }) => !gone.includes(message_id));
});

export const steer = act('steer', async (model, real, [d, l, t]) => {
  const device = pick(online(real), d!);
  const lane = pick(lanesOf(model), l!);
  if (!device || !lane) return;
  const text = textOf(real, t!);
  const { payload } = expectType(await device.request('agent.steer', { text }, scopeOf(lane)), 'ack');
  note(model, real, keyOf(lane), text, device);
  await quiet(real);
  takenSteers(real, model);
  if (model.taken.has(payload.message_id!)) owe(model, payload.message_id!);
});

export const stop = act('stop', async (model, real, [d, l]) => {
  const device = pick(online(real), d!);
  const turn = pick(runningTurns(real, model), l!);
  if (!device || !turn || !real.agent.connected) return;
  expectType(await device.request('agent.stop', {}, { chat_id: turn.chat_id, thread_id: turn.thread_id }), 'ack');
  await quiet(real);
  if (!turn.stopped) throw new Error('STO1: the agent was not told');
  await finish(model, real, turn, 'cancelled');
});

export const answerPicker = act('answer picker', async (model, real, [d, p]) => {
  const device = pick(online(real), d!);
  const picker_id = pick([...model.pickers.keys()], p!);
  if (!device || !picker_id) return;
  const both = [device, pick(online(real), d! + 1)!].map((one) => one.request('picker.select', { picker_id, value: 'a' }));
  const [first, second] = await Promise.all(both);
  if ([first, second].filter((answer) => answer?.type === 'ack').length !== 1) throw new Error('PIC8: not one answer won');
  model.pickers.delete(picker_id);
});

/** A device has shown messages: one, several at once, of which the furthest counts, or an earlier one after the newest, which changes nothing. */
export const readUpTo = act('read', async (model, real, [d, l, m]) => {
  const device = pick(online(real), d!);
  const lane = pick(
    lanesOf(model).filter(({ said }) => said.length > 0),
    l!,
  );
  if (!device || !lane) return;
  const any = pick(lane.said, m!)!;
  const together = [any, pick(lane.said, m! + 1)!, pick(lane.said, m! * 5)!];
  const steps = m! % 3 === 0 ? [together] : m! % 3 === 1 ? [[lane.said.at(-1)!], [any]] : [[any]];
  for (const shown of steps) {
    const answers = await Promise.all(shown.map(({ message_id }) => device.request('read.receipt', { message_id }, scopeOf(lane))));
    for (const answer of answers) expectType(answer, 'ack');
    for (const said of shown) read(model, device.device_id, keyOf(lane), said);
  }
});

/** The agent takes what somebody said who has gone meanwhile: that one hears of it when it is back. */
export const takenBehindOnesBack = act('taken behind its back', async (model, real, [d, l, t]) => {
  const device = pick(online(real), d!);
  const lane = pick(lanesOf(model), l!);
  if (!device || !lane || !real.agent.connected) return;
  const text = textOf(real, t!);
  const echo = expectType(await device.send(text, scopeOf(lane)), 'message');
  note(model, real, laneOf(echo), text, device);
  cut(model, device, false);
  await quiet(real);
  const turn = [...real.agent.turns.values()].find((one) => one.text === text && one.state === 'offered');
  if (turn) take(model, turn);
  await quiet(real);
});
