import { laneOf } from '@iris/testkit';
import { act, back, lanesOf, note, online, pick, scopeOf, textOf } from './acting.js';
import {
  accept,
  agentBack,
  agentCreates,
  agentDeletes,
  agentLeaves,
  agentRestarts,
  end,
  finish,
  openPicker,
  speak,
  stream,
  take,
  whole,
} from './agent-commands.js';
import { autoThread, bind, createChannel, deleteChannel, rename, setDefault } from './channel-commands.js';
import {
  answerPicker,
  comeBack,
  deleteMessages,
  leave,
  readUpTo,
  replaced,
  send,
  sendAndCut,
  sendTogether,
  steer,
  stop,
  takenBehindOnesBack,
} from './device-commands.js';
import { keyOf, type Model } from './model.js';
import { agentComes, checkAll, checkViews, quiet, type Real, settled } from './stage.js';

/**
 * Redis comes back empty. Whoever says something next makes the tenant's order go on from where nobody can have been; who may have missed something
 * is sent back to `sync`, and told there that something is missing.
 */
const loseOutbox = act('lose the outbox', async (model, real, [ms, l, t]) => {
  const lane = pick(lanesOf(model), l!);
  if (!real.agent.connected || real.away || !lane) return;
  await quiet(real);
  await settled(real, model);
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

const killEdge = act('kill edge', async (model, real, [n]) => {
  const { world } = real;
  const here = online(real);
  const alive = world.edges.filter((one) => one.alive);
  pick(alive, n!)!.kill();
  await world.startEdge();
  await world.advance(20);
  for (const device of here) if (!device.connected) model.vanished.add(device.device_id);
});

const look = act('look', async (model, real, [d, _, page]) => {
  const device = pick(online(real), d!);
  if (device) await checkAll(real, model, device, 1 + (page! % 9));
});

const often = [send, send, sendTogether, deleteMessages, accept, stream, leave, comeBack, comeBack, look];

const seldom = [
  readUpTo,
  takenBehindOnesBack,
  sendAndCut,
  replaced,
  createChannel,
  bind,
  bind,
  autoThread,
  rename,
  setDefault,
  deleteChannel,
  steer,
  stop,
  whole,
  end,
  openPicker,
];

const rarely = [
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
  await settled(real, model);
  for (let n = 0, waited = 0; n < 200; n++) {
    await quiet(real);
    const turn = [...real.agent.turns.values()].find(
      ({ state, ...one }) => (state === 'offered' || state === 'accepted') && model.lanes.has(laneOf(one)),
    );
    if (turn !== undefined) {
      take(model, turn);
      await finish(model, real, turn, 'completed');
      continue;
    }
    // What an agent's earlier process had been offered is offered again, though nobody names it.
    const open = (await real.world.store.turns.open(real.tenant.tenant_id)).filter((row) => model.lanes.has(laneOf(row)));
    if (open.length === 0) break;
    if (++waited > 30) throw new Error(`LNK33: ${open.map(({ turn_id }) => turn_id)} is not offered again`);
    await real.world.advance(1_000);
  }
  checkViews(real, model);
  for (const device of real.devices) await checkAll(real, model, device, 7);
}
