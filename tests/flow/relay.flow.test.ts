import { createHmac } from 'node:crypto';
import { makeToken } from '@iris/protocol';
import { makeWorld, type Wire } from '@iris/testkit';
import { describe, expect, test } from '@jest/globals';

const bearer = (token: string, expiry: number) => {
  const signed = `${token}:${expiry}`;
  return Buffer.from(`${signed}:${createHmac('sha256', token).update(signed).digest('hex')}`).toString('base64url');
};

interface Frame {
  readonly type: string;
  readonly bufferId?: string;
  readonly event?: {
    readonly text: string;
    readonly message_id: string;
    readonly source: { readonly chat_id: string; readonly thread_id?: string };
  };
  readonly requestId?: string;
  readonly result?: { readonly success: boolean; readonly message_id?: string; readonly error?: string; readonly thread_id?: string };
  readonly session_key?: string;
  readonly descriptor?: Record<string, unknown>;
}

type World = Awaited<ReturnType<typeof makeWorld>>;
type Tenant = Awaited<ReturnType<World['tenant']>>;

/** The agent's side of the relay contract, as Hermes speaks it. */
async function hermes(world: World, tenant: Tenant, options: { edge?: number; token?: string; hello?: boolean } = {}) {
  const heard: Frame[] = [];
  let closed: number | undefined;
  let requests = 0;
  const token = options.token ?? bearer(tenant.agent_token, 0);
  const wire: Wire = await world.edges[options.edge ?? 0]!.links.dial('/relay', { token })({
    message: (data) =>
      void heard.push(
        ...String(data)
          .trim()
          .split('\n')
          .map((line) => JSON.parse(line) as Frame),
      ),
    ping: (data) => wire.pong(data),
    closed: (code) => {
      closed = code;
    },
  });
  const say = (frame: object) => wire.send(`${JSON.stringify(frame)}\n`);
  if (options.hello !== false) say({ type: 'hello', platform: 'relay', botId: '' });
  await world.advance(500);
  let taken = 0;
  return {
    heard,
    wire,
    say,
    get closed() {
      return closed;
    },
    of: (type: string) => heard.filter((frame) => frame.type === type),
    /** The next message of a person; taken, as Hermes does it once it has given it to its session. */
    async inbound() {
      await world.advance(300);
      const frame = heard.filter(({ type }) => type === 'inbound')[taken++];
      if (frame === undefined) throw new Error(`nothing came in: ${JSON.stringify(heard)}`);
      say({ type: 'inbound_ack', bufferId: frame.bufferId });
      return frame.event!;
    },
    async act(action: object) {
      const requestId = `r${++requests}`;
      say({ type: 'outbound', requestId, action: { chat_id: 'default', ...action } });
      await world.advance(200);
      return heard.find((frame) => frame.requestId === requestId)?.result;
    },
    final: { notify: true },
  };
}

async function begun() {
  const world = await makeWorld();
  const tenant = await world.tenant();
  const agent = await hermes(world, tenant);
  const a = await tenant.join('phone');
  return { world, tenant, agent, a };
}
const turnOver = (world: World) => world.advance(1_500);

describe('attaching', () => {
  test('C128 LIM9 LNK46: who signs a token with itself is a stranger until it is let in: limited, counted, and closed in time', async () => {
    const world = await makeWorld();
    const tenant = await world.tenant();
    const agent = await hermes(world, tenant);
    const at = world.time.now();
    const strangers = await Promise.all(
      Array.from({ length: 90 }, (_, n) =>
        hermes(world, tenant, { token: bearer(makeToken('agent', tenant.tenant_id, `guess${n}`.padEnd(32, 'x')), 0) }),
      ),
    );
    const closed = () => strangers.filter(({ closed: code }) => code !== undefined).length;
    // As many were tried as guesses are, and told so; the others wait for nothing.
    expect(strangers.filter(({ closed: code }) => code === 4401).length).toBeLessThanOrEqual(22);
    await world.advance(at + 10_500 - world.time.now());
    expect(closed()).toBe(90);
    expect(new Set(strangers.map(({ closed: code }) => code))).toEqual(new Set([4401, 4408]));
    // None of it is left, and whoever was let in stays.
    await world.advance(2_000);
    expect(world.edges[0]!.stats()).toMatchObject({ greeting: 0, known: 1 });
    expect(agent.closed).toBeUndefined();
    for (const member of [...world.edges, ...world.sessions, ...world.workers]) member.kill();
    world.time.end();
  });

  test('LIM9: no more sockets of one address than may be without a hello, and no more of what each says', async () => {
    const world = await makeWorld({ edge_config: { sockets_before_hello: 6, hello_failures_burst: 1 } });
    const tenant = await world.tenant();
    // What is said meanwhile is held, and bounded as what is said behind a hello.
    const token = bearer(makeToken('agent', tenant.tenant_id, 'guess'.padEnd(32, 'x')), 0);
    await hermes(world, tenant, { token: bearer(makeToken('agent', tenant.tenant_id, 'first'.padEnd(32, 'x')), 0) });
    const loud = await hermes(world, tenant, { token });
    for (let n = 0; n < 200; n++) loud.say({ type: 'outbound', requestId: `${n}`, action: { op: 'send', content: 'x'.repeat(10_000) } });
    await world.advance(100);
    expect(loud.closed).toBe(4429);
    const codes = [];
    for (let n = 0; n < 8; n++)
      codes.push(
        (await hermes(world, tenant, { token: bearer(makeToken('agent', tenant.tenant_id, `guess${n}`.padEnd(32, 'x')), 0) })).closed,
      );
    expect(codes.filter((code) => code === 1013).length).toBeGreaterThanOrEqual(1);
    for (const member of [...world.edges, ...world.sessions, ...world.workers]) member.kill();
    world.time.end();
  });

  test('LNK46 LNK2: a token that is not good is 4401; a good one gets a descriptor for each hello', async () => {
    const world = await makeWorld();
    const tenant = await world.tenant();
    const other = 'iris-agent.nobody.0123456789abcdef0123';
    expect((await hermes(world, tenant, { token: 'nonsense', hello: false })).closed).toBe(4401);
    expect((await hermes(world, tenant, { token: bearer(other, 0) })).closed).toBe(4401);
    const agent = await hermes(world, tenant);
    agent.say({ type: 'hello', platform: 'telegram', botId: '7' });
    await world.advance(300);
    expect(agent.of('descriptor').map(({ descriptor }) => descriptor)).toMatchObject([
      { contract_version: 1, platform: 'relay', supports_edit: true },
      { contract_version: 1, platform: 'telegram' },
    ]);
    expect(agent.closed).toBeUndefined();
  });

  test('a frame that is none ends the socket, and nothing else', async () => {
    const { world, agent, a } = await begun();
    agent.wire.send('{"type":7}\n');
    await world.advance(300);
    expect(agent.closed).toBe(4400);
    expect((await a.request('ping', { ts: 1 })).type).toBe('pong');
  });

  test('LNK16: the same agent by another edge takes over; the older one may not come back', async () => {
    const { world, tenant, agent } = await begun();
    const newer = await hermes(world, tenant, { edge: 1 });
    await world.advance(1_000);
    expect([agent.closed, newer.closed]).toEqual([4401, undefined]);
  });
});

describe('a turn', () => {
  test('LNK46 LNK19 LNK20: the message goes to Hermes, a final word and quiet behind it end the turn', async () => {
    const { world, agent, a } = await begun();
    await a.send('hello there');
    const event = await agent.inbound();
    expect(event).toMatchObject({ text: 'hello there', source: { platform: 'relay', chat_id: 'default', chat_type: 'dm' } });
    await agent.act({ op: 'send', content: 'Let me see.', metadata: {} });
    const sent = await agent.act({ op: 'send', content: 'Good morning', metadata: agent.final });
    expect(sent).toMatchObject({ success: true, message_id: expect.any(String) });
    expect(a.frames('agent.idle')).toHaveLength(0);
    await turnOver(world);
    expect(a.frames(['agent.busy', 'commentary', 'message', 'agent.idle']).map(({ type, payload }) => [type, payload.text])).toEqual([
      ['message', 'hello there'],
      ['agent.busy', undefined],
      ['commentary', 'Let me see.'],
      ['message', 'Good morning'],
      ['agent.idle', undefined],
    ]);
  });

  test('LNK23: text that is edited grows, and ends with the edit that says so', async () => {
    const { world, agent, a } = await begun();
    await a.send('hello there');
    await agent.inbound();
    const sent = await agent.act({ op: 'send', content: 'Good', metadata: { expect_edits: true } });
    await agent.act({ op: 'edit', message_id: sent?.message_id, content: 'Good mor', metadata: {} });
    await agent.act({ op: 'edit', message_id: sent?.message_id, content: 'Good morning', finalize: true });
    await turnOver(world);
    expect(a.frames('message.stop').map(({ payload }) => payload.final_text)).toEqual(['Good morning']);
    expect(a.frames('message.update').map(({ payload }) => payload.text)).toContain('Good mor');
    expect(a.frames('agent.idle')).toHaveLength(1);
    expect(await agent.act({ op: 'edit', message_id: sent?.message_id, content: 'late' })).toMatchObject({ success: false });
  });

  test('LNK21 C27: stop interrupts the session; what Hermes says to it is not shown, and the next turn is', async () => {
    const { world, agent, a } = await begun();
    await a.send('count to a million');
    await agent.inbound();
    await a.request('agent.stop', {}, { chat_id: 'android:default' });
    await a.next('agent.idle');
    await world.advance(200);
    expect(agent.of('interrupt_inbound')[0]).toMatchObject({ session_key: 'agent:main:relay:dm:default', chat_id: 'default' });
    // Until Hermes has heard it: it may not have begun.
    await world.advance(1_000);
    expect(agent.of('interrupt_inbound').length).toBeGreaterThan(2);
    await agent.act({ op: 'send', content: '⚡ Stopped.', metadata: agent.final });
    const interrupts = agent.of('interrupt_inbound').length;
    await world.advance(3_000);
    expect(agent.of('interrupt_inbound')).toHaveLength(interrupts);
    await a.send('again');
    await agent.inbound();
    await agent.act({ op: 'send', content: 'here', metadata: agent.final });
    await turnOver(world);
    expect(a.frames((frame) => frame.payload.role === 'assistant').map(({ payload }) => payload.text)).toEqual(['here']);
    expect(a.frames('agent.idle')).toHaveLength(2);
  });

  test('an approval in words is a picker, and its answer the command; the reply to that is not the answer of the turn', async () => {
    const { world, agent, a } = await begun();
    await a.send('clean up');
    await agent.inbound();
    await agent.act({
      op: 'send',
      content: 'Dangerous:\n```\nrm -rf x\n```\nReply `/approve` to execute, or `/deny` to cancel.',
      metadata: {},
    });
    const picker = await a.next('picker.approval');
    expect(picker.payload).toMatchObject({ command: 'rm -rf x' });
    await a.request('picker.select', { picker_id: picker.payload.picker_id!, value: 'once' });
    expect((await agent.inbound()).text).toBe('/approve');
    await agent.act({ op: 'send', content: '✅ Approved', metadata: agent.final });
    await turnOver(world);
    expect(a.frames('agent.idle')).toHaveLength(0);
    await agent.act({ op: 'send', content: 'cleaned', metadata: agent.final });
    await turnOver(world);
    expect(a.frames((frame) => frame.payload.role === 'assistant').map(({ payload }) => payload.text)).toEqual(['cleaned']);
    expect(a.frames('agent.idle')).toHaveLength(1);
  });

  test('LNK42: a prompt of a newer Hermes is a picker; the answer names its option', async () => {
    const { world, agent, a } = await begun();
    await a.send('choose');
    await agent.inbound();
    const options = [
      { option_id: 'o1', label: 'Red' },
      { option_id: 'o2', label: 'Blue' },
    ];
    await agent.act({ op: 'prompt', prompt_kind: 'choice', prompt_id: 'p1', content: 'Which?', options });
    const picker = await a.next('picker.choice');
    await a.request('picker.select', { picker_id: picker.payload.picker_id!, value: 'o2' });
    expect(await agent.inbound()).toMatchObject({ prompt_response: { prompt_id: 'p1', option_id: 'o2', label: 'Blue' } });
    await agent.act({ op: 'send', content: 'blue it is', metadata: agent.final });
    await turnOver(world);
    expect(a.frames('agent.idle')).toHaveLength(1);
  });

  test('LNK29: a command beside a running turn waits for it, but for the answer that it waits for', async () => {
    const { world, agent, a } = await begun();
    await a.send('long work');
    await agent.inbound();
    await a.send('/status');
    await a.send('/approve');
    expect((await agent.inbound()).text).toBe('/approve');
    await agent.act({ op: 'send', content: '✅ Approved', metadata: agent.final });
    await turnOver(world);
    await agent.act({ op: 'send', content: 'the work is done', metadata: agent.final });
    await turnOver(world);
    expect((await agent.inbound()).text).toBe('/status');
  });
});

describe('what breaks', () => {
  test('a message that Hermes had not taken comes again on its next socket; one that it had taken does not', async () => {
    const { world, tenant, agent, a } = await begun();
    await a.send('first');
    await agent.inbound();
    await a.send('second', { thread_id: null });
    agent.wire.cut();
    await world.advance(500);
    const again = await hermes(world, tenant);
    await again.act({ op: 'send', content: 'one', metadata: again.final });
    await turnOver(world);
    expect((await again.inbound()).text).toBe('second');
    expect(again.of('inbound')).toHaveLength(1);
    expect(a.frames((frame) => frame.payload.role === 'assistant').map(({ payload }) => payload.text)).toEqual(['one']);
  });

  test('a Hermes that comes back and says nothing more of its turn was restarted: the turn ends, and the person is told', async () => {
    const { world, tenant, agent, a } = await begun();
    await a.send('long work');
    await agent.inbound();
    agent.wire.cut();
    const again = await hermes(world, tenant);
    await world.advance(25_000);
    expect(a.frames('agent.idle')).toHaveLength(1);
    expect(a.frames((frame) => frame.payload.role === 'system').at(-1)?.payload.text).toMatch(/restarted/);
    await again.act({
      op: 'send',
      content: '♻️ Recovered reply — the gateway restarted during delivery, so this may be a duplicate:\n\nlate',
      metadata: {},
    });
    expect(a.frames('message').at(-1)?.payload).toMatchObject({ role: 'assistant', text: 'late' });
  });

  test('LNK46: an answer that was owed when Hermes was restarted ends its turn, without its mark', async () => {
    const { world, tenant, agent, a } = await begun();
    await a.send('long work');
    await agent.inbound();
    agent.wire.cut();
    const again = await hermes(world, tenant);
    await again.act({
      op: 'send',
      content: '♻️ Recovered reply — the gateway restarted during delivery, so this may be a duplicate:\n\nthe answer',
      metadata: {},
    });
    await turnOver(world);
    expect(a.frames(['commentary', 'message', 'agent.idle']).map(({ type, payload }) => [type, payload.text])).toEqual([
      ['message', 'long work'],
      ['message', 'the answer'],
      ['agent.idle', undefined],
    ]);
  });

  test('nobody comes back: the agent is no longer attached, and turns wait', async () => {
    const { world, agent, a } = await begun();
    agent.wire.cut();
    await world.advance(40_000);
    await a.send('are you there?');
    await world.advance(10_000);
    expect(a.frames((frame) => frame.payload.role === 'system')).toHaveLength(1);
    expect(a.frames('agent.busy')).toHaveLength(0);
  });
});

describe('outside a turn', () => {
  test('LNK28: what comes by itself is a message; a cron is one', async () => {
    const { agent, a } = await begun();
    await agent.act({ op: 'send', content: 'A job came back', metadata: {} });
    await agent.act({ op: 'send', content: 'Cronjob Response: weather\n-----\n\nSnow', metadata: {} });
    expect(a.frames('message').map(({ payload }) => payload.role)).toEqual(['assistant', 'cron']);
  });

  test('LNK44: threads, names, deletions and what a chat is', async () => {
    const { world, agent, a } = await begun();
    const made = await agent.act({ op: 'thread_create', name: 'Plans' });
    expect(made).toMatchObject({ success: true, thread_id: expect.any(String) });
    await agent.act({ op: 'thread_rename', thread_id: made?.thread_id, name: 'Better plans', only_if_current_name: 'Plans' });
    await world.advance(300);
    expect(a.frames('channel.renamed').map(({ payload }) => payload.name)).toEqual(['Better plans']);
    const sent = await agent.act({ op: 'send', content: 'a slip', metadata: { thread_id: made?.thread_id } });
    await agent.act({ op: 'delete', message_id: sent?.message_id, metadata: { thread_id: made?.thread_id } });
    await world.advance(300);
    expect(a.frames('message.deleted')).toHaveLength(1);
    expect(await agent.act({ op: 'get_chat_info' })).toMatchObject({ success: true, chat_info: { type: 'dm' } });
    expect(await agent.act({ op: 'react' })).toMatchObject({ success: false, error: expect.stringMatching(/supported_ops/) });
  });
});
