import { type AnyFrame, laneOf, type TestDevice, type TestTurn } from '@iris/testkit';
import fc from 'fast-check';
import { endTurn, keyOf, type Model, type ModelLane, read, removeLane, say, words } from './model.js';
import { agentComes, checkAll, checkViews, come, quiet, type Real, runningTurns, saidAs } from './stage.js';

type Act = fc.AsyncCommand<Model, Real>;
type Deed = (model: Model, real: Real, dice: readonly number[]) => Promise<void>;

/** A command is a name and some numbers, by which it chooses among what there is when it runs; where there is nothing, it does nothing. */
const act = (name: string, run: Deed): fc.Arbitrary<Act> =>
  fc.tuple(fc.nat(99), fc.nat(99), fc.nat(99)).map((dice) => ({
    check: () => true,
    run: (model, real) => run(model, real, dice),
    toString: () => `${name}(${dice.join(', ')})`,
  }));

const pick = <T>(list: readonly T[], n: number): T | undefined => list[n % Math.max(1, list.length)];
const online = ({ devices }: Real) => devices.filter(({ connected }) => connected);
const lanesOf = ({ lanes }: Model) => [...lanes.values()];
const scopeOf = ({ chat_id, thread_id }: ModelLane) => ({ chat_id, thread_id });
const textOf = (real: Real, n: number) => `${words[n % words.length]} ${words[(n >> 2) % words.length]} ${real.next()}`;

function expectType(answer: AnyFrame, type: string): AnyFrame {
  if (answer.type !== type) throw new Error(`answered by ${answer.type} ${JSON.stringify(answer.payload)}, not ${type}`);
  return answer;
}
/** What the log has under this text, which somebody was told is there. */
function note(model: Model, real: Real, lane: string, text: string): void {
  const said = saidAs(real, text);
  if (said === undefined) throw new Error(`${text} is not in the outbox`);
  say(model, lane, said);
}

const send = act('send', async (model, real, [d, l, t]) => {
  const device = pick(online(real), d!);
  const lane = pick(lanesOf(model), l!);
  if (!device || !lane) return;
  const text = textOf(real, t!);
  const echo = expectType(await device.send(text, scopeOf(lane)), 'message');
  note(model, real, laneOf(echo), text);
});

const sendTogether = act('send together', async (model, real, [d, l, t]) => {
  const lane = pick(lanesOf(model), l!);
  if (!lane) return;
  const texts = online(real).flatMap((device) => [1, 2].map(() => ({ device, text: textOf(real, t! + d!) })));
  const answers = await Promise.all(texts.map(({ device, text }) => device.send(text, scopeOf(lane))));
  for (const answer of answers) expectType(answer, 'message');
  for (const { text } of texts) note(model, real, keyOf(lane), text);
});

/** The answer is lost with the connection; when the device is back it asks again, and what was said is said once. */
const sendAndCut = act('send and cut', async (model, real, [d, l, t]) => {
  const device = pick(online(real), d!);
  const lane = pick(lanesOf(model), l!);
  if (!device || !lane || model.unsure.has(device.device_id)) return;
  const text = textOf(real, t!);
  const client_ref = `ref ${real.next()}`;
  model.unsure.set(device.device_id, { client_ref, text, lane: keyOf(lane) });
  device.send(text, { ...scopeOf(lane), client_ref }).catch(() => {});
  await real.world.advance(t! % 4);
  device.cut({ silent: t! % 2 === 0 });
  await real.world.advance(20);
  // Whoever had it in memory that this was said may be gone by then.
  if (t! % 3 === 0) await replaceSessions(real);
});

async function replaceSessions({ world }: Real): Promise<void> {
  for (const member of world.sessions) member.kill();
  for (let n = 0; n < 2; n++) await world.startSession();
}

async function back(model: Model, real: Real, device: TestDevice, door: number): Promise<void> {
  await come(real, model, device, door);
  const unsure = model.unsure.get(device.device_id);
  if (!unsure) return;
  const lane = model.lanes.get(unsure.lane);
  if (lane) {
    const { client_ref, text } = unsure;
    expectType(await device.send(text, { ...scopeOf(lane), client_ref }), 'message');
    note(model, real, unsure.lane, text);
  }
  model.unsure.delete(device.device_id);
}

const leave = act('leave', async (_model, real, [d, how]) => {
  pick(online(real), d!)?.cut({ silent: how! % 3 === 0 });
  await real.world.advance(10);
});
const comeBack = act('come back', async (model, real, [d, door]) => {
  const device = pick(
    real.devices.filter(({ connected }) => !connected),
    d!,
  );
  if (device) await back(model, real, device, door!);
});
/** It comes back before the gateway has noticed that it went. */
const replaced = act('dial again', async (model, real, [d, door]) => {
  const device = pick(online(real), d!);
  if (device) await back(model, real, device, door!);
});

const createChannel = act('create channel', async (model, real, [d, l, kind]) => {
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
const autoThread = act('auto thread', async (model, real, [d, l, t]) => {
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
  note(model, real, keyOf(lane), text);
});
const rename = act('rename', async (model, real, [d, l]) => {
  const device = pick(online(real), d!);
  const lane = pick(lanesOf(model), l!);
  if (!device || !lane) return;
  const name = `Renamed ${real.next()}`;
  expectType(await device.request('channel.rename', { name }, scopeOf(lane)), 'channel.renamed');
  lane.name = name;
});
const setDefault = act('set default', async (model, real, [d, l]) => {
  const device = pick(online(real), d!);
  const lane = pick(lanesOf(model), l!);
  if (!device || !lane) return;
  const answer = await device.request('channel.set_default', {}, scopeOf(lane));
  if (lane.thread_id !== null) return void expectType(answer, 'error');
  expectType(answer, 'channel.list');
  model.default_chat = lane.chat_id;
});
const deleteChannel = act('delete channel', async (model, real, [d, l]) => {
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
  for (const turn of gone) {
    endTurn(model, turn.turn_id);
    turn.end('cancelled');
  }
  await quiet(real);
});

const deleteMessages = act('delete messages', async (model, real, [d, l, m]) => {
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

const steer = act('steer', async (model, real, [d, l, t]) => {
  const device = pick(online(real), d!);
  const lane = pick(lanesOf(model), l!);
  if (!device || !lane) return;
  const text = textOf(real, t!);
  expectType(await device.request('agent.steer', { text }, scopeOf(lane)), 'ack');
  note(model, real, keyOf(lane), text);
  await quiet(real);
});
const stop = act('stop', async (model, real, [d, l]) => {
  const device = pick(online(real), d!);
  const turn = pick(runningTurns(real, model), l!);
  if (!device || !turn || !real.agent.connected) return;
  expectType(await device.request('agent.stop', {}, { chat_id: turn.chat_id, thread_id: turn.thread_id }), 'ack');
  await quiet(real);
  if (!turn.stopped) throw new Error('STO1: the agent was not told');
  await finish(model, real, turn, 'cancelled');
});

async function finish(model: Model, real: Real, turn: TestTurn, outcome: string): Promise<void> {
  const texts = [...turn.running.values()].map(({ text }) => text);
  for (const message_id of [...turn.running.keys()]) turn.stop({ message_id });
  turn.end(outcome, outcome === 'failed' ? { error: 'as the test says' } : {});
  endTurn(model, turn.turn_id);
  await quiet(real);
  for (const text of texts) note(model, real, laneOf(turn), text);
}

const accept = act('accept', async (_model, real, [n]) => {
  if (!real.agent.connected) return;
  await quiet(real);
  pick(
    [...real.agent.turns.values()].filter(({ state }) => state === 'offered'),
    n!,
  )?.accept();
  await quiet(real);
});
const stream = act('stream', async (model, real, [n, t]) => {
  const turn = pick(runningTurns(real, model), n!);
  if (!turn || !real.agent.connected) return;
  if (turn.running.size === 0) {
    turn.start();
    turn.delta(textOf(real, t!));
  }
  turn.delta(` ${words[t! % words.length]}`);
  await quiet(real);
});
const whole = act('say whole', async (model, real, [n, t]) => {
  const turn = pick(runningTurns(real, model), n!);
  if (!turn || !real.agent.connected) return;
  const text = textOf(real, t!);
  turn.message(text);
  await quiet(real);
  note(model, real, laneOf(turn), text);
});
const end = act('end', async (model, real, [n, how]) => {
  const turn = pick(runningTurns(real, model), n!);
  if (turn && real.agent.connected) await finish(model, real, turn, how! % 4 === 0 ? 'failed' : 'completed');
});
const openPicker = act('open picker', async (model, real, [n]) => {
  const turn = pick(runningTurns(real, model), n!);
  if (!turn || !real.agent.connected) return;
  const title = `Question ${real.next()}`;
  turn.picker('choice', {
    title,
    choices: [
      { value: 'a', label: 'A' },
      { value: 'b', label: 'B' },
    ],
  });
  await quiet(real);
  const shown = real.tenant.log.find(({ frame }) => frame.type === 'picker.choice' && frame.payload.title === title);
  if (shown === undefined) throw new Error('PIC1: the picker is not in the outbox');
  model.pickers.set(shown.frame.payload.picker_id!, turn.turn_id);
});
const answerPicker = act('answer picker', async (model, real, [d, p]) => {
  const device = pick(online(real), d!);
  const picker_id = pick([...model.pickers.keys()], p!);
  if (!device || !picker_id) return;
  const both = [device, pick(online(real), d! + 1)!].map((one) => one.request('picker.select', { picker_id, value: 'a' }));
  const [first, second] = await Promise.all(both);
  if ([first, second].filter((answer) => answer?.type === 'ack').length !== 1) throw new Error('PIC8: not one answer won');
  model.pickers.delete(picker_id);
});

/** A device has shown messages: one, or several at once, of which the furthest counts. */
const readUpTo = act('read', async (model, real, [d, l, m]) => {
  const device = pick(online(real), d!);
  const lane = pick(
    lanesOf(model).filter(({ said }) => said.length > 0),
    l!,
  );
  if (!device || !lane) return;
  const shown = m! % 3 === 0 ? [pick(lane.said, m!)!, pick(lane.said, m! + 1)!, pick(lane.said, m! * 5)!] : [pick(lane.said, m!)!];
  const answers = await Promise.all(shown.map(({ message_id }) => device.request('read.receipt', { message_id }, scopeOf(lane))));
  for (const answer of answers) expectType(answer, 'ack');
  for (const said of shown) read(model, device.device_id, keyOf(lane), said);
});

/** Outside any turn, as a timer of the agent's does. */
const speak = act('speak up', async (model, real, [l, t, role]) => {
  const lane = pick(lanesOf(model), l!);
  if (!lane || !real.agent.connected) return;
  const text = textOf(real, t!);
  const message_id = `mine ${real.next()}`;
  real.agent.say('message', { message_id, role: role! % 2 === 0 ? 'cron' : 'assistant', text }, scopeOf(lane));
  await quiet(real);
  note(model, real, keyOf(lane), text);
});
const agentCreates = act('agent creates channel', async (model, real, [cut]) => {
  if (!real.agent.connected || model.lanes.size > 8) return;
  const name = `Lane ${real.next()}`;
  const id = `ask ${name}`;
  real.agent.say('channel.create', { name }, { id });
  // The answer may go with the link; it comes on the next.
  if (cut! % 3 === 0) {
    await real.world.advance(cut! % 5);
    real.agent.cut();
  }
  await quiet(real);
  const answers = real.agent.received.all.filter((frame) => frame.id === id);
  if (answers.length !== 1) throw new Error(`LNK44: answered ${answers.length} times`);
  const { chat_id } = expectType(answers[0]!, 'channel.created').payload;
  model.lanes.set(chat_id!, { chat_id: chat_id!, thread_id: null, name, said: [] });
});
const agentDeletes = act('agent deletes a message', async (model, real, [l, m]) => {
  const lane = pick(
    lanesOf(model).filter(({ said }) => said.length > 0),
    l!,
  );
  if (!lane || !real.agent.connected) return;
  const { message_id } = pick(lane.said, m!)!;
  real.agent.say('message.delete', { message_ids: [message_id] }, scopeOf(lane));
  await quiet(real);
  lane.said = lane.said.filter((said) => said.message_id !== message_id);
});
const agentLeaves = act('agent leaves', async (_model, real, [how]) => {
  real.away = true;
  real.agent.cut({ silent: how! % 2 === 0 });
  await real.world.advance(10);
});
const agentBack = act('agent comes back', async (_model, real, [door]) => agentComes(real, door!));

/**
 * The agent's process ends and starts again, with what was on its disk. It goes on with its turns, or knows nothing of them: then those that it had
 * accepted end as interrupted, with what they had said, and the others are offered again.
 */
const agentRestarts = act('agent restarts', async (model, real, [door, how]) => {
  if (!real.agent.connected) return;
  await quiet(real);
  const keeps = how! % 3 === 0;
  const lost = keeps ? [] : runningTurns(real, model);
  const said = lost.flatMap((turn) => [...turn.running.values()].map(({ text }) => ({ lane: laneOf(turn), text })));
  real.agent.restart({ turns: keeps, install: how! % 3 === 1 });
  await agentComes(real, door!);
  // Until what the old process had kept has certainly come.
  if (!keeps) await real.world.advance(7_000);
  await quiet(real);
  for (const turn of lost) endTurn(model, turn.turn_id);
  for (const { lane, text } of said) note(model, real, lane, text);
});

/**
 * Redis comes back empty. Whoever says something next makes the tenant's order go on from where nobody can have been; who may have missed something
 * is sent back to `sync`, and told there that something is missing.
 */
const loseOutbox = act('lose the outbox', async (model, real, [ms, l, t]) => {
  const lane = pick(lanesOf(model), l!);
  if (!real.agent.connected || real.away || !lane) return;
  await quiet(real);
  const here = online(real);
  model.lossy = true;
  real.world.loseOutbox(1 + ms! * 10);
  await real.world.advance(ms! * 10 + 2_000);
  const text = textOf(real, t!);
  real.agent.say('message', { message_id: `mine ${real.next()}`, role: 'cron', text }, scopeOf(lane));
  await quiet(real);
  await real.world.advance(4_000);
  await quiet(real);
  note(model, real, keyOf(lane), text);
  for (const [n, device] of here.entries()) if (!device.connected) await back(model, real, device, n);
});

const killSession = act('kill session', async (_model, { world }, [n]) => {
  const alive = world.sessions.filter((one) => one.alive);
  pick(alive, n!)!.kill();
  await world.startSession();
});
const killEdge = act('kill edge', async (_model, { world }, [n]) => {
  const alive = world.edges.filter((one) => one.alive);
  pick(alive, n!)!.kill();
  await world.startEdge();
  await world.advance(20);
});

const look = act('look', async (model, real, [d, _, page]) => {
  const device = pick(online(real), d!);
  if (device) await checkAll(real, model, device, 1 + (page! % 9));
});

const often = [send, send, sendTogether, deleteMessages, accept, stream, leave, comeBack, comeBack, look];
const seldom = [sendAndCut, replaced, createChannel, autoThread, rename, setDefault, deleteChannel, steer, stop, whole, end, openPicker];
const rarely = [
  readUpTo,
  readUpTo,
  agentRestarts,
  loseOutbox,
  answerPicker,
  speak,
  agentCreates,
  agentDeletes,
  agentLeaves,
  agentBack,
  agentBack,
  killSession,
  killEdge,
];
export const commands = [...often, ...often, ...seldom, ...rarely];

/** Everyone comes back, every turn comes to its end, and then all must agree. */
export async function finally_(model: Model, real: Real): Promise<void> {
  await agentComes(real, 0);
  for (const [n, device] of real.devices.entries()) await back(model, real, device, n);
  for (let n = 0; n < 200; n++) {
    await quiet(real);
    const turn = [...real.agent.turns.values()].find(
      ({ state, ...one }) => (state === 'offered' || state === 'accepted') && model.lanes.has(laneOf(one)),
    );
    if (turn === undefined) break;
    turn.accept();
    await finish(model, real, turn, 'completed');
  }
  checkViews(real, model);
  for (const device of real.devices) await checkAll(real, model, device, 7);
}
