import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { frameTypes, type MediaId, rowOf, type TenantId } from '@iris/protocol';
import type { MediaRow } from '@iris/store';
import { type AnyFrame, lane, makeWorld, type Payload, type TestAgent, type TestDevice, type World, type WorldTenant } from '@iris/testkit';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type IdKind, type IdPlace, idPlaces, placed, stands } from '../tenancy/id-places.js';

/**
 * The ownership matrix: every id of another tenant in every place of every frame in which an id can stand, beside an id that never was.
 * Both read the same, ask the stores the same questions, and leave the owner as it was. Made from the frame table: a new frame is in it
 * by itself.
 */

/** A tenant in which everything exists that an id can name. */
interface Party {
  readonly tenant: WorldTenant;
  readonly device: TestDevice;
  readonly agent: TestAgent;
  readonly ids: Readonly<Record<Exclude<IdKind, 'own'>, string>>;
  /** So that nothing of it is left to be looked after. */
  leave(): Promise<void>;
}

const fixtures = join(import.meta.dirname, '../../packages/protocol/fixtures');
const fixtureOf = ({ type, side }: IdPlace) =>
  JSON.parse(readFileSync(join(fixtures, side === 'up' ? 'device-up' : 'agent-up', `${type}.json`), 'utf8')) as AnyFrame;

async function party(world: World, channels: number, name = 'phone'): Promise<Party> {
  const tenant = await world.tenant();
  const { tenant_id } = tenant;
  const at = world.time.now();
  const create = async (n: number, chat_id?: string) => {
    const made = await world.store.channels.create({
      tenant_id,
      ...(chat_id === undefined ? {} : { chat_id: chat_id as never }),
      name: `c${n}`,
      auto: false,
      idempotency_key: `c${n}`,
      max: 1_000,
      at,
    });
    if (typeof made === 'string') throw new Error(made);
    return made.row;
  };
  // More than the others have, so that none of these is the name of something of theirs.
  for (let n = 0; n < channels; n++) await create(n);
  const channel = await create(channels);
  const thread = await create(channels + 1, channel.chat_id);
  const media = (media_id: string, state: MediaRow['state'], media_ref: string): MediaRow => ({
    tenant_id,
    media_id: media_id as MediaId,
    media_ref,
    device_id: 'phone' as MediaRow['device_id'],
    state,
    kind: 'file',
    mime: 'text/plain',
    size: 3,
    filename: 'a.txt',
    sha256: '0'.repeat(64),
    details: {},
    created_at: at,
    object_id: `ob_${media_id}` as MediaRow['object_id'],
    uploaded_sha256: '0'.repeat(64),
    processed: true,
  });
  const ids = { media: `md_of_${tenant_id}`, media_ref: `mu_of_${tenant_id}` };
  for (const [n, row] of [media(ids.media, 'attached', `${ids.media_ref}x`), media(`${ids.media}y`, 'uploaded', ids.media_ref)].entries()) {
    const object_id = row.object_id!;
    await world.store.media.insert(row, { object_id, size: 3, sha256: `${n}`.repeat(64) });
    const writer = await world.backbone.media.open(tenant_id, object_id);
    await writer.append(new TextEncoder().encode('abc'));
    await writer.finish();
  }
  const agent = tenant.agent();
  await agent.connect();
  const device = await tenant.join(name, { edge: 0 });
  const said = await device.send('secret', { chat_id: channel.chat_id });
  const turn = await agent.turn();
  turn.picker('choice', { choices: [{ value: 'y', label: 'Y' }] });
  const picker_id = (await device.next('picker.choice')).payload.picker_id!;
  return {
    tenant,
    device,
    agent,
    ids: {
      ...ids,
      chat: channel.chat_id,
      thread: thread.thread_id!,
      message: said.payload.message_id!,
      picker: picker_id,
      turn: turn.turn_id,
    },
    async leave() {
      turn.end();
      await world.advance(10);
      device.close();
      agent.close();
    },
  };
}

/** A device of the owner's, and what its apps may name things by. */
const ownersName = 'owners-phone';
/** One that never was, of the same make: its last letter is another. */
const never = (id: string): string => `${id.slice(0, -1)}${id.endsWith('7') ? '8' : '7'}`;

/** What the fixture must say besides, so that the place is looked at. */
const meant = new Map<string, Payload>([
  ['up channel.create payload.parent_chat_id', { kind: 'thread' }],
  ['agent_up channel.create payload.parent_chat_id', { kind: 'thread' }],
  ...['chat_id', 'thread_id'].flatMap((path) =>
    ['up', 'agent_up'].map((side): [string, Payload] => [`${side} search ${path}`, { scope: 'chat' }]),
  ),
]);

/** The frame of the fixture about things of the party's own, but for one place. */
function frameFor(place: IdPlace, own: Party, id: string): AnyFrame {
  const fixture = fixtureOf(place);
  let frame: unknown = { ...fixture, payload: { ...fixture.payload, ...meant.get(`${place.side} ${place.type} ${place.path}`) } };
  const others = idPlaces().filter((other) => other.type === place.type && other.side === place.side && other.kind !== 'own');
  for (const other of others)
    if (stands(frame, other.path) || needs(place, other)) frame = placed(frame, other.path, own.ids[other.kind as keyof Party['ids']]);
  if (place.kind === 'thread') frame = placed(frame, 'chat_id', lane.chat_id);
  return placed(frame, place.path, id) as AnyFrame;
}

/** Fields of the envelope that the fixture may have left out. */
function needs({ type, side }: IdPlace, { path }: IdPlace): boolean {
  if (path.startsWith('payload.') || path === 'thread_id') return false;
  if (side === 'up') return rowOf(type)!.up!.scope !== 'none';
  const { turn } = rowOf(type)!.agent_up!;
  return turn === 'required' || (turn === 'optional' && path === 'chat_id');
}

interface Heard {
  /** What came to the one who asked, with times from the asking, and with everything that is the run's own taken out. */
  readonly frames: readonly unknown[];
  readonly calls: readonly string[];
  readonly connected: boolean;
}

/** Ids and names that differ by chance. */
const plain = (text: string, own: Party, id: string): string =>
  text
    .replaceAll(id, '<the id>')
    .replaceAll(own.tenant.tenant_id, '<tenant>')
    .replaceAll(/\b([a-z]{1,2})_[0-9A-Za-z_-]{16,}/g, '<$1>')
    .replaceAll(/"(ts|server_ts|created_at|at|epoch|expires_at|sync_cursor|cursor)":\d+/g, '"$1":0')
    .replaceAll(/\/media\/[\w.-]+/g, '<link>')
    .replaceAll(/"(link_id|install_id)":"[^"]*"/g, '"$1":""');

/** Away from what comes by the clock: sweeps each second, ticks each 250 ms. */
const quiet = (world: World) => world.advance(1_000 - (world.time.now() % 1_000) + 620);
const listen_ms = 40;

async function probe(world: World, place: IdPlace, id: string): Promise<Heard & { answer: AnyFrame | undefined }> {
  const own = await party(world, 2);
  const frame = frameFor(place, own, id);
  let { device } = own;
  if (place.type === 'hello' && place.side === 'up') {
    device = own.tenant.device('another', { edge: 0 });
    await device.connect();
  }
  await quiet(world);
  const calls: string[] = [];
  world.backbone.onCall = ({ to, name }) => calls.push(`${to}.${name}`);
  const from = world.time.now();
  const { type, payload, chat_id, thread_id, turn_id } = frame;
  if (place.side === 'up') {
    const token = type === 'hello' ? { token: device.token } : {};
    device.raw(JSON.stringify({ ...frame, id: 'asked', payload: { ...payload, ...token } }));
  } else if (type === 'hello') {
    const { last_seq: _, ...said } = payload;
    void own.agent.connect(undefined, said).catch(() => {});
  } else {
    const scope = {
      ...(chat_id === undefined ? {} : { chat_id }),
      ...(thread_id ? { thread_id } : {}),
      ...(turn_id === undefined ? {} : { turn_id }),
    };
    own.agent.say(type, payload, { ...scope, id: 'asked' });
  }
  await world.advance(listen_ms);
  delete world.backbone.onCall;
  const said = [...device.received.all, ...own.agent.story.filter(({ way }) => way === 'in')].filter(({ at }) => at >= from);
  const frames = said.map(({ at, frame: one }) => ({
    after_ms: at - from,
    frame: JSON.parse(plain(JSON.stringify(one), own, id)) as unknown,
  }));
  const answer = said.find(({ frame: one }) => one.id === 'asked')?.frame;
  const heard = { frames, calls, connected: device.connected, answer };
  await own.leave();
  if (device !== own.device) device.close();
  return heard;
}

/** Everything that is the tenant's, as the store has it. */
async function all(world: World, tenant_id: TenantId) {
  const { store } = world;
  const channels = await store.channels.list(tenant_id);
  return {
    channels,
    messages: await Promise.all(channels.map((at) => store.messages.page(tenant_id, at, { limit: 200 }))),
    turns: await store.turns.open(tenant_id),
    pickers: await store.pickers.list(tenant_id),
    reads: await store.reads.list(tenant_id),
    tokens: await store.tokens.list(tenant_id),
    devices: (await store.devices.list(tenant_id)).map(({ watermark: _, last_seen_at: __, ...rest }) => rest),
    agents: (await store.agents.list(tenant_id)).map(({ link_seen_at: _, ...rest }) => rest),
    tenant: await store.tenants.get(tenant_id),
  };
}

/** Where an id is only listed, or where what was asked does not hang on it; each says why. */
const answeredAll = new Map<string, string>([
  ['message.delete payload.message_ids[]', 'DEL2: ids that never were are listed as gone, so that a repeated request is answered alike'],
]);
const looksAtLane = (type: IdPlace['type']) => rowOf(type)!.up!.scope !== 'none';
/** What a device must be told of the place. */
function expectedOf({ type, side, path, kind }: IdPlace): 'not_found' | undefined {
  if (side !== 'up' || type === 'hello' || kind === 'own' || answeredAll.has(`${type} ${path}`)) return undefined;
  if (!path.startsWith('payload.')) return looksAtLane(type) ? 'not_found' : undefined;
  // An upload's ref is the device's own name for it.
  return type.startsWith('media.') ? undefined : 'not_found';
}

describe('C119 ENV27: the ownership matrix', () => {
  let world: World;
  let owner: Party;
  let before: Awaited<ReturnType<typeof all>>;
  beforeAll(async () => {
    world = await makeWorld({ edges: 1, sessions: 1 });
    owner = await party(world, 40, ownersName);
    await world.advance(1_000);
    before = await all(world, owner.tenant.tenant_id);
  });
  afterAll(() => {
    for (const member of [...world.edges, ...world.sessions, ...world.workers]) member.kill();
    world.time.end();
  });

  test('every frame that is sent to us is in it', () => {
    const types = new Set(idPlaces().map(({ type, side }) => `${side} ${type}`));
    const sent = frameTypes.flatMap((type) =>
      (['up', 'agent_up'] as const).filter((side) => rowOf(type)![side]).map((side) => `${side} ${type}`),
    );
    expect([...types].sort()).toEqual(sent.sort());
  });

  test.each(idPlaces().map((place) => [`${place.side} ${place.type} ${place.path}`, place] as const))('%s', async (_, place) => {
    const mark = owner.device.received.all.length;
    const log = owner.tenant.log.length;
    const foreign = place.kind === 'own' ? ownersName : owner.ids[place.kind];
    const unknown = never(foreign);
    const { answer, ...first } = await probe(world, place, foreign);
    const { answer: other, ...second } = await probe(world, place, unknown);
    expect(first).toEqual(second);
    const expected = expectedOf(place);
    if (expected !== undefined) expect([answer?.payload.code, other?.payload.code]).toEqual([expected, expected]);
    expect(owner.device.received.all.length).toBe(mark);
    expect(owner.tenant.log.length).toBe(log);
    expect(await all(world, owner.tenant.tenant_id)).toEqual(before);
  });
});
