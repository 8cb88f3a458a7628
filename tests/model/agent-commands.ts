/** What the agent does. */
import { laneOf, type TestTurn } from '@iris/testkit';
import { act, expectType, lanesOf, note, pick, scopeOf, textOf } from './acting.js';
import { endTurn, keyOf, type Model, words } from './model.js';
import { taken, takenSteers } from './receipts.js';
import { agentComes, quiet, type Real, runningTurns } from './stage.js';

export async function finish(model: Model, real: Real, turn: TestTurn, outcome: string): Promise<void> {
  const texts = [...turn.running.values()].map(({ text }) => text);
  for (const message_id of [...turn.running.keys()]) turn.stop({ message_id });
  turn.end(outcome, outcome === 'failed' ? { error: 'as the test says' } : {});
  endTurn(model, turn.turn_id);
  await quiet(real);
  for (const text of texts) note(model, real, laneOf(turn), text);
}

export const accept = act('accept', async (model, real, [n]) => {
  if (!real.agent.connected) return;
  await quiet(real);
  const turn = pick(
    [...real.agent.turns.values()].filter(({ state }) => state === 'offered'),
    n!,
  );
  if (turn) take(model, turn);
  await quiet(real);
});

export function take(model: Model, turn: TestTurn): void {
  if (turn.state === 'offered') taken(model, turn);
  turn.accept();
}

export const stream = act('stream', async (model, real, [n, t]) => {
  const turn = pick(runningTurns(real, model), n!);
  if (!turn || !real.agent.connected) return;
  if (turn.running.size === 0) {
    turn.start();
    turn.delta(textOf(real, t!));
  }
  turn.delta(` ${words[t! % words.length]}`);
  await quiet(real);
});

export const whole = act('say whole', async (model, real, [n, t]) => {
  const turn = pick(runningTurns(real, model), n!);
  if (!turn || !real.agent.connected) return;
  const text = textOf(real, t!);
  turn.message(text);
  await quiet(real);
  note(model, real, laneOf(turn), text);
});

export const end = act('end', async (model, real, [n, how]) => {
  const turn = pick(runningTurns(real, model), n!);
  if (turn && real.agent.connected) await finish(model, real, turn, how! % 4 === 0 ? 'failed' : 'completed');
});

export const openPicker = act('open picker', async (model, real, [n]) => {
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

/** Outside any turn, as a timer of the agent's does. */
export const speak = act('speak up', async (model, real, [l, t, role]) => {
  const lane = pick(lanesOf(model), l!);
  if (!lane || !real.agent.connected) return;
  const text = textOf(real, t!);
  const message_id = `mine ${real.next()}`;
  real.agent.say('message', { message_id, role: role! % 2 === 0 ? 'cron' : 'assistant', text }, scopeOf(lane));
  await quiet(real);
  note(model, real, keyOf(lane), text);
});

export const agentCreates = act('agent creates channel', async (model, real, [cut]) => {
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

export const agentDeletes = act('agent deletes a message', async (model, real, [l, m]) => {
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

export const agentLeaves = act('agent leaves', async (_model, real, [how]) => {
  real.away = true;
  real.agent.cut({ silent: how! % 2 === 0 });
  await real.world.advance(10);
});

export const agentBack = act('agent comes back', async (_model, real, [door]) => agentComes(real, door!));

/**
 * The agent's process ends and starts again, with what was on its disk. It goes on with its turns, or knows nothing of them: then those that it had
 * accepted end as interrupted, with what they had said, and the others are offered again.
 */
export const agentRestarts = act('agent restarts', async (model, real, [door, how]) => {
  if (!real.agent.connected) return;
  await quiet(real);
  takenSteers(real, model);
  const keeps = how! % 3 === 0;
  const gone = keeps ? [] : runningTurns(real, model);
  const lost = gone.map((turn) => ({
    turn_id: turn.turn_id,
    lane: laneOf(turn),
    texts: [...turn.running.values()].map(({ text }) => text),
  }));
  real.agent.restart({ turns: keeps, install: how! % 3 === 1 });
  for (const { turn_id } of lost) endTurn(model, turn_id);
  model.lost = [...model.lost, ...lost];
  await agentComes(real, door!);
});
