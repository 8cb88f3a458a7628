import { type Control, subjects } from '@iris/bus';
import type { ChatId } from '@iris/protocol';
import {
  type AnyFrame,
  type Break,
  laneOf,
  makeAgent,
  makeWorld,
  type TestAgent,
  type TestDevice,
  type TestTurn,
  type World,
  type WorldTenant,
} from '@iris/testkit';
import { find, type Model, type ModelLane, queries, type Said, say } from './model.js';
import { checkReceipts } from './receipts.js';
import { viewOf } from './view.js';

/** What the commands act on. */
export interface Real {
  readonly world: World;
  readonly tenant: WorldTenant;
  /** The default one, which does what the commands say. */
  readonly agent: TestAgent;
  /** Serves the channels that are bound to it, and answers at once. */
  readonly second: TestAgent;
  readonly second_token: string;
  /** Who serves a channel from now on. */
  bind(chat_id: string, to: 'second' | 'default'): Promise<void>;
  readonly devices: readonly TestDevice[];
  /** The agent is away of its own will; else it dials again whenever its link ends. */
  away: boolean;
  /** A number that no text had yet. */
  next(): number;
}

export async function newReal(seed: number, model: Model, breaks: readonly Break[] = []): Promise<Real> {
  const world = await makeWorld({ seed, breaks });
  const tenant = await world.tenant();
  const agent = tenant.agent();
  await agent.connect();
  // With everything, with pieces of texts, and an app of old.
  const devices = [
    tenant.device('phone', { caps: { cursors: true } }),
    tenant.device('tablet', { caps: { delta: true } }),
    tenant.device('desk'),
  ];
  const { token, agent_id } = await makeAgent(world.store, tenant, 'second', { at: world.time.now() });
  const second = tenant.agent({ edge: 1, token, install_id: 'install of the second', script: answerAtOnce });
  await second.connect();
  const { bus } = world.backbone.join('control', 'net');
  const bind: Real['bind'] = async (chat_id, to) => {
    await world.store.channels.bind(tenant.tenant_id, chat_id as ChatId, to === 'second' ? agent_id : null);
    const order: Control = { kind: 'rerouted', tenant_id: tenant.tenant_id };
    bus.publish(subjects.control, new TextEncoder().encode(JSON.stringify(order)));
    await world.advance(50);
  };
  const real: Real = { world, tenant, agent, second, second_token: token, bind, devices, away: false, next: counter() };
  for (const [n, device] of devices.entries()) await come(real, model, device, n);
  return real;
}
/** What the second agent says of a text. */
export const heardBySecond = (text: string): string => `heard ${text}`;
function answerAtOnce(turn: TestTurn): void {
  turn.accept();
  turn.message(heardBySecond(turn.text));
  turn.end();
}
const counter = () => {
  let last = 0;
  return () => ++last;
};

const open = ({ world }: Real) => world.edges.filter(({ alive }) => alive);
const doorOf = (real: Real, n: number) => open(real)[n % open(real).length]!.links;

/** A device comes (back) through one of the edges, and catches up. */
export async function come(real: Real, model: Model, device: TestDevice, door: number): Promise<void> {
  const position = device.connections.findLast(({ synced }) => synced !== undefined)?.synced;
  const answer = await device.join(doorOf(real, door).dial('/ws'));
  model.vanished.delete(device.device_id);
  if (answer.type !== 'hello.ack') throw new Error(`${device.device_id} is refused: ${JSON.stringify(answer.payload)}`);
  // By turns from where it knows to be, and from where the gateway thinks that it is.
  const done = await device.sync(door % 2 === 0 ? position : undefined);
  if (!done.payload.truncated && !done.payload.reset) return;
  if (!model.lossy) throw new Error(`${device.device_id}: sync says that something is missing`);
  for (const { chat_id, thread_id } of model.lanes.values()) await device.history({ chat_id, thread_id, limit: 200 });
}

async function dialSecond(real: Real, door: number): Promise<void> {
  const answer = await real.second.connect(doorOf(real, door).dial('/agent', { token: real.second_token }));
  if (answer.type !== 'hello.ack') throw new Error(`the second agent is refused: ${JSON.stringify(answer.payload)}`);
}

async function dialAgent(real: Real, door: number): Promise<void> {
  const answer = await real.agent.connect(doorOf(real, door).dial('/agent', { token: real.tenant.agent_token }));
  if (answer.type !== 'hello.ack') throw new Error(`the agent is refused: ${JSON.stringify(answer.payload)}`);
}

export async function agentComes(real: Real, door: number): Promise<void> {
  real.away = false;
  await dialAgent(real, door);
  await quiet(real);
}

/** Until everything that was said has arrived everywhere. */
export async function quiet(real: Real): Promise<void> {
  const { world, agent, second } = real;
  await world.advance(150);
  for (let n = 0; n < 50 && !real.away && (!agent.connected || agent.unacked.length > 0); n++) {
    if (!agent.connected) await dialAgent(real, n);
    await world.advance(100);
  }
  for (let n = 0; n < 50 && (!second.connected || second.unacked.length > 0); n++) {
    if (!second.connected) await dialSecond(real, n);
    await world.advance(100);
  }
}

/** Turns that the agent has taken on, of lanes that stand. */
export const runningTurns = ({ agent }: Real, model: Model): TestTurn[] =>
  [...agent.turns.values()].filter((turn) => turn.state === 'accepted' && model.lanes.has(laneOf(turn)));

/** Where and as what a text stands in the outbox. Texts are never said twice. */
export function saidAs({ tenant }: Real, text: string): Said | undefined {
  const found = tenant.log.find(({ frame }) => isFinal(frame) && textOf(frame) === text);
  if (found === undefined) return undefined;
  const { role = 'assistant', message_id } = found.frame.payload;
  return { cursor: found.cursor, message_id: message_id!, role, text };
}
const isFinal = ({ type }: AnyFrame): boolean => type === 'message' || type === 'message.stop';
const textOf = ({ payload }: AnyFrame): string => payload.final_text ?? payload.text ?? '';

/** A promise that the model makes and the product does not keep. */
function same(what: string, got: unknown, wanted: unknown): void {
  const [one, other] = [JSON.stringify(got), JSON.stringify(wanted)];
  if (one !== other) throw new Error(`${what}:\n  is     ${one}\n  should ${other}`);
}

/** Notices of the gateway's own are no words of the model's: only that everyone is shown the same. */
const spoken = (rows: readonly { message_id: string; role: string; text: string }[], model: Model) => {
  const unsure = new Set([...model.unsure.values()].map(({ text }) => text));
  return rows
    .filter(({ role, text }) => role !== 'system' && !unsure.has(text))
    .map(({ message_id, role, text }) => [message_id, role, text]);
};

export async function checkHistory(real: Real, model: Model, asking: TestDevice, lane: ModelLane, page: number): Promise<void> {
  const rows = (await asking.historyAll({ chat_id: lane.chat_id, thread_id: lane.thread_id }, page)) as never as Said[];
  same(`O1 O3 O11: history of ${laneOf(lane)} in pages of ${page}`, spoken(rows, model), spoken(lane.said, model));
  for (const device of real.devices.filter(({ connected }) => connected)) {
    const shown = [...(viewOf(device).messages.get(laneOf(lane)) ?? [])].map(([message_id, row]) => [message_id, row.role, row.text]);
    const sure = new Set([...model.unsure.values()].map(({ text }) => text));
    const wanted = rows.filter(({ text }) => !sure.has(text)).map(({ message_id, role, text }) => [message_id, role, text]);
    same(
      `O1 O2 O3 O11: ${device.device_id} shows of ${laneOf(lane)}`,
      shown.filter(([, , text]) => !sure.has(text!)),
      wanted,
    );
  }
}

export async function checkSearch(model: Model, asking: TestDevice, query: string, lane: ModelLane | undefined): Promise<void> {
  const scope = lane === undefined ? {} : { chat_id: lane.chat_id, thread_id: lane.thread_id };
  const answer = await asking.request('search', { query, scope: lane === undefined ? 'all' : 'chat' }, scope);
  const hits = answer.payload.hits as { message_id: string; snippet: string }[] | undefined;
  if (hits === undefined) throw new Error(`search is answered ${JSON.stringify(answer)}`);
  const unsure = [...model.unsure.values()].map(({ text }) => text);
  const found = hits.filter(({ snippet }) => !unsure.includes(snippet)).map(({ message_id }) => message_id);
  const wanted = find(model, query, lane === undefined ? undefined : laneOf(lane));
  if (wanted.length + unsure.length <= 50) {
    same(`O1 O11: search ${JSON.stringify(query)}`, found, wanted);
    same(`SEA3: has_more of ${JSON.stringify(query)}`, answer.payload.has_more, false);
  }
}

/** What every device that is online shows, beside messages. */
export function checkViews(real: Real, model: Model): void {
  const turns = runningTurns(real, model);
  const running = turns.flatMap((turn) => [...turn.running.values()].map(({ text }) => text)).sort();
  for (const device of real.devices.filter(({ connected }) => connected)) {
    const view = viewOf(device);
    const name = device.device_id;
    const channels = [...model.lanes].map(([key, lane]) => [key, lane.name]).sort();
    same(`${name} shows channels`, [...view.channels].sort(), channels);
    same(`${name} shows as default`, view.default_chat, model.default_chat);
    same(`O10: ${name} shows as busy`, [...view.busy].sort(), [...new Set(turns.map((turn) => laneOf(turn)))].sort());
    same(`${name} shows as pickers`, [...view.pickers.keys()].sort(), [...model.pickers.keys()].sort());
    // Of others; its own it knows itself. What went with an outbox nobody can be told any more.
    if (!model.lossy) {
      // What is said of a deleted message goes with it.
      const stands = ({ lane, message_id }: { lane: string; message_id: string }) =>
        model.lanes.get(lane)?.said.some((one) => one.message_id === message_id) === true;
      const read = new Map([...model.reads].filter(([, one]) => one.device_id !== name && stands(one)));
      // Where the furthest is gone an app may show what it was told before; never anything that was not read.
      const further = (key: string, message_id: string) => {
        const said = model.lanes.get(key.slice(key.indexOf(' ') + 1))?.said.find((one) => one.message_id === message_id);
        return said !== undefined && said.cursor > (model.reads.get(key)?.cursor ?? -1);
      };
      const shown = [...view.reads].filter(([key, message_id]) => read.has(key) || further(key, message_id));
      const wanted = [...read].map(([key, { message_id }]) => [key, message_id]);
      same(`RCP4: ${name} shows as read`, shown.sort(), wanted.sort());
    }
    same(`${name} shows running texts`, [...view.running.values()].map(({ text }) => text).sort(), running);
  }
}

/** What the second agent was given it has answered. */
function heard({ second, ...real }: Real, model: Model): void {
  for (const turn of second.turns.values()) {
    model.taken.add((turn.offer.message as unknown as { message_id: string }).message_id);
    const text = heardBySecond(turn.text);
    if (model.heard.has(turn.turn_id) || !model.lanes.has(laneOf(turn))) continue;
    const said = saidAs({ second, ...real }, text);
    if (said === undefined) throw new Error(`LNK17: ${text} is not in the outbox`);
    model.heard.add(turn.turn_id);
    say(model, laneOf(turn), said);
  }
}

/**
 * Turns that the agent's new process knows nothing of come to their end by themselves: those that it had accepted with what they had said. Until then
 * nobody can say what devices show of them.
 */
export async function settled(real: Real, model: Model): Promise<void> {
  if (model.lost.length === 0) return;
  if (real.away || !real.agent.connected) await agentComes(real, 0);
  const open = async () => {
    const ids = new Set((await real.world.store.turns.open(real.tenant.tenant_id)).map(({ turn_id }) => String(turn_id)));
    return model.lost.filter(({ turn_id, lane }) => model.lanes.has(lane) && ids.has(turn_id));
  };
  for (let n = 0; (await open()).length > 0; n++) {
    if (n > 30) throw new Error(`LNK34: ${(await open()).map(({ turn_id }) => turn_id)} does not end`);
    await real.world.advance(1_000);
  }
  await quiet(real);
  for (const { lane, texts } of model.lost.filter((one) => model.lanes.has(one.lane)))
    for (const text of texts) {
      const said = saidAs(real, text);
      if (said === undefined) throw new Error(`LNK34: ${text} is not in the outbox`);
      say(model, lane, said);
    }
  model.lost = [];
}

/** What is stored of how far each device has read. */
async function checkReads({ world, tenant }: Real, model: Model): Promise<void> {
  const stored = (await world.store.reads.list(tenant.tenant_id)).map((row) => [row.device_id, laneOf(row), row.message_id]);
  const wanted = [...model.reads.values()].map(({ device_id, lane, message_id }) => [device_id, lane, message_id]);
  same('RCP3: read', stored.sort(), wanted.sort());
}

export async function checkAll(real: Real, model: Model, asking: TestDevice, page: number): Promise<void> {
  await quiet(real);
  await settled(real, model);
  heard(real, model);
  checkViews(real, model);
  checkReceipts(real, model);
  await checkReads(real, model);
  for (const lane of model.lanes.values()) await checkHistory(real, model, asking, lane, page);
  for (const query of queries) {
    await checkSearch(model, asking, query, undefined);
    await checkSearch(model, asking, query, [...model.lanes.values()][page % model.lanes.size]);
  }
}
