/** What becomes of channels and threads. */
import { act, expectType, lanesOf, note, online, pick, scopeOf, textOf } from './acting.js';
import { endTurn, keyOf, type ModelLane, removeLane } from './model.js';
import { quiet, runningTurns } from './stage.js';

export const createChannel = act('create channel', async (model, real, [d, l, kind]) => {
  const device = pick(online(real), d!);
  if (!device || model.lanes.size > 8) return;
  const name = `Lane ${real.next()}`;
  const parents = lanesOf(model).filter(({ thread_id }) => thread_id === null);
  const parent = pick(parents, l!)!;
  const thread = kind! % 2 === 0;
  const asked = thread ? { name, kind: 'thread', parent_chat_id: parent.chat_id } : { name };
  const { payload } = expectType(await device.request('channel.create', asked), 'channel.created');
  const lane: ModelLane = { chat_id: payload.chat_id!, thread_id: payload.thread_id ?? null, name, said: [] };
  if (thread && lane.chat_id !== parent.chat_id) throw new Error('CHA3: a thread in another channel');
  model.lanes.set(keyOf(lane), lane);
});

export const autoThread = act('auto thread', async (model, real, [d, l, t]) => {
  const device = pick(online(real), d!);
  const parent = pick(
    lanesOf(model).filter(({ thread_id }) => thread_id === null),
    l!,
  );
  if (!device || !parent || model.lanes.size > 8) return;
  const text = textOf(real, t!);
  const echo = expectType(await device.send(text, { ...scopeOf(parent), auto_thread: true }), 'message');
  const lane: ModelLane = { chat_id: parent.chat_id, thread_id: echo.thread_id!, name: text, said: [] };
  model.lanes.set(keyOf(lane), lane);
  note(model, real, keyOf(lane), text, device);
});

export const rename = act('rename', async (model, real, [d, l]) => {
  const device = pick(online(real), d!);
  const lane = pick(lanesOf(model), l!);
  if (!device || !lane) return;
  const name = `Renamed ${real.next()}`;
  expectType(await device.request('channel.rename', { name }, scopeOf(lane)), 'channel.renamed');
  lane.name = name;
});

export const setDefault = act('set default', async (model, real, [d, l]) => {
  const device = pick(online(real), d!);
  const lane = pick(lanesOf(model), l!);
  if (!device || !lane) return;
  const answer = await device.request('channel.set_default', {}, scopeOf(lane));
  if (lane.thread_id !== null) return void expectType(answer, 'error');
  expectType(answer, 'channel.list');
  model.default_chat = lane.chat_id;
});

export const deleteChannel = act('delete channel', async (model, real, [d, l]) => {
  const device = pick(online(real), d!);
  const lane = pick(lanesOf(model), l!);
  if (!device || !lane) return;
  const answer = await device.request('channel.delete', {}, scopeOf(lane));
  if (lane.thread_id === null && lane.chat_id === model.default_chat) return void expectType(answer, 'error');
  expectType(answer, 'channel.deleted');
  const gone = runningTurns(real, model).filter(
    (turn) => turn.chat_id === lane.chat_id && (lane.thread_id === null || turn.thread_id === lane.thread_id),
  );
  removeLane(model, lane);
  model.lost = model.lost.filter((one) => model.lanes.has(one.lane));
  for (const turn of gone) {
    endTurn(model, turn.turn_id);
    turn.end('cancelled');
  }
  await quiet(real);
});

/** Its messages, and those of its threads, go to the other agent from now on; a turn that was given stays with whom it was given to. */
export const bind = act('bind', async (model, real, [l, who]) => {
  const lane = pick(
    lanesOf(model).filter(({ chat_id, thread_id }) => thread_id === null && chat_id !== model.default_chat),
    l!,
  );
  if (lane) await real.bind(lane.chat_id, who! % 3 === 0 ? 'default' : 'second');
});
