import type { Store } from '@iris/store';
import { describe, expect, test } from '@jest/globals';
import { agent_id, type Frame, lane, type Rig, type RigOptions, rig, tenant } from '../testing/rig.js';

/** A device and an agent that has been offered the device's first message. */
async function stage(options: RigOptions & { accept?: boolean; caps?: Record<string, unknown> } = {}) {
  const made = await rig(options);
  const phone = made.device('phone');
  await phone.hello();
  const link = made.agent();
  await link.hello(options.caps ? { caps: options.caps } : {});
  const { payload } = await phone.send('question');
  const turn_id = (await link.turn()).turn_id!;
  const say = (type: string, more: Record<string, unknown> = {}) => link.say(type, more, { turn_id });
  if (options.accept !== false) await say('turn.accepted');
  return { ...made, phone, link, turn_id, say, question: payload.message_id as unknown as string };
}
const types = (frames: readonly Frame[]) => frames.map(({ type }) => type);
/** What devices were told behind the echo. */
const told = ({ edge }: Rig) => types(edge.frames()).slice(1);
/** What is in the order behind it. */
const logged = async ({ log }: Rig) => types(await log()).slice(1);
const history = async ({ store }: Rig) => {
  const page = await store.messages.page(tenant, lane as never, { limit: 100 });
  return page === 'unknown_before' ? [] : page.rows;
};

describe('a turn', () => {
  test('LNK20, MSG12, TRN1: its message is offered, accepted, answered, and the lane is idle', async () => {
    const at = await stage();
    const start = at.link.received().find(({ type }) => type === 'turn.start');
    expect(start).toMatchObject({
      seq: 1,
      ...lane,
      payload: { kind: 'chat', attempt: 1, message: { text: 'question', message_id: at.question }, channel: { name: 'Default' } },
    });
    await at.say('message.start', { message_id: 'm1', role: 'assistant' });
    await at.link.update('message.update', { message_id: 'm1', text: 'ans' }, at.turn_id);
    await at.say('message.stop', { message_id: 'm1', final_text: 'answer', reasoning: 'thought' });
    await at.say('turn.end', { outcome: 'completed' });
    expect(told(at)).toEqual(['agent.busy', 'message.start', 'message.stop', 'agent.idle']);
    const [update] = at.edge.ephemerals().filter(({ type }) => type === 'message.update');
    expect(update).toMatchObject({ after: 3, key: `text:${update?.message_id}` });
    expect((await history(at)).map(({ role, text, reasoning }) => ({ role, text, reasoning }))).toEqual([
      { role: 'user', text: 'question', reasoning: null },
      { role: 'assistant', text: 'answer', reasoning: 'thought' },
    ]);
    expect(await at.store.turns.open(tenant)).toEqual([]);
    expect((await at.outbox.values(tenant)).size).toBe(0);
  });

  test('MSG18, ORD2: many beats at once ask once what was deleted, and of one that was nothing is said', async () => {
    let asked = 0;
    const counting = (store: Store): Store => ({
      ...store,
      messages: {
        ...store.messages,
        deleted(tenant_id, ids) {
          asked++;
          return store.messages.deleted(tenant_id, ids);
        },
      },
    });
    const at = await stage({ store: counting });
    await at.say('commentary', { message_id: 'c0', text: 'gone soon' });
    await at.say('message.delete', { message_ids: ['c0'] });
    asked = 0;
    // The deleted one once more, under another number, as a process would that has forgotten that it said it.
    const beats = ['c0', ...Array.from({ length: 30 }, (_, i) => `c${i + 1}`)];
    await Promise.all(beats.map((message_id) => at.say('commentary', { message_id, text: message_id })));
    const said = (await at.log()).filter(({ type, payload }) => type === 'commentary' && payload.text !== 'gone soon');
    expect(said.map(({ payload }) => payload.text)).toEqual(beats.slice(1));
    expect(asked).toBeLessThan(5);
  });

  test('RCP1: the sender hears when the agent has accepted, and not before', async () => {
    const at = await stage({ accept: false });
    const receipts = () => at.edge.ephemerals().filter(({ type }) => type === 'read.receipt');
    expect(receipts()).toEqual([]);
    await at.say('turn.accepted');
    expect(receipts()).toMatchObject([{ to: at.phone.connection_id }]);
  });

  test('ORD5: what is live only belongs behind its own frames, not behind those that are placed with them', async () => {
    const at = await stage({ accept: false });
    const { turn_id } = at;
    const frame = (type: string, seq: number, payload = {}) =>
      at.link.request.record(type, Buffer.from(JSON.stringify({ v: 1, type, seq, turn_id, payload })));
    at.edge.send([frame('turn.accepted', 1), frame('turn.end', 2, { outcome: 'completed' })]);
    await at.clock.settle();
    const heard = at.edge.heard.flatMap((record): (number | string)[] =>
      record.kind === 'durable' ? [record.cursor] : record.kind === 'ephemeral' ? [`after ${record.after}`] : [],
    );
    expect(heard).toEqual([1, 2, 'after 2', 3]);
  });

  test('RCP2: a receipt for a connection that is gone comes with the next hello, once', async () => {
    const at = await stage({ accept: false });
    at.phone.gone();
    await at.outbox.unregister(tenant, { device_id: 'phone', edge_id: 'e1', connection_id: at.phone.connection_id } as never);
    await at.say('turn.accepted');
    const owed = async () =>
      (await at.device('phone').hello()).frames.map((frame) => JSON.parse(frame) as Frame).filter(({ type }) => type === 'read.receipt');
    expect(await owed()).toMatchObject([{ payload: { message_id: at.question } }]);
    expect(await owed()).toEqual([]);
  });

  test('TRN7: one that fails leaves its partial text, and a system message that says why', async () => {
    const at = await stage();
    await at.say('message.start', { message_id: 'm1', role: 'assistant' });
    await at.link.update('message.update', { message_id: 'm1', text: 'I was' }, at.turn_id);
    await at.say('turn.end', { outcome: 'failed', error: 'out of memory' });
    expect(told(at)).toEqual(['agent.busy', 'message.start', 'message.stop', 'message', 'agent.idle']);
    expect((await history(at)).map(({ role, text, interrupted }) => [role, text, interrupted])).toEqual([
      ['user', 'question', false],
      ['assistant', 'I was', true],
      ['system', 'The agent could not finish: out of memory', false],
    ]);
  });

  test('LNK26: frames that come again have no effect, and are acked again', async () => {
    const at = await stage();
    await at.say('message', { message_id: 'm1', text: 'answer' });
    const before = at.edge.durable().length;
    await at.link.repeat(1, 'turn.accepted', {}, { turn_id: at.turn_id });
    await at.link.repeat(2, 'message', { message_id: 'm1', text: 'answer' }, { turn_id: at.turn_id });
    expect(at.edge.durable()).toHaveLength(before);
    expect(
      at.link
        .received()
        .filter(({ type }) => type === 'ack')
        .at(-1)?.ack,
    ).toBe(2);
  });

  test('LNK27: the same final said again under another name is one message', async () => {
    const at = await stage();
    await at.say('message', { message_id: 'm1', text: 'answer' });
    await at.say('message', { message_id: 'm2', text: 'answer' });
    await at.say('message', { message_id: 'm3', text: 'another' });
    expect((await history(at)).map(({ text }) => text)).toEqual(['question', 'answer', 'another']);
  });

  test('TRN5: the lane’s further messages wait their turn, in order; other lanes do not', async () => {
    const at = await stage();
    const other = (await at.phone.request('channel.create', { name: 'Other' })).payload.chat_id as unknown as string;
    await at.phone.send('second');
    await at.phone.send('third');
    await at.phone.send('elsewhere', {}, { chat_id: other });
    const offered = () =>
      at.link
        .received()
        .filter(({ type }) => type === 'turn.start')
        .map(({ payload }) => (payload as unknown as { message: { text: string } }).message.text);
    expect(offered()).toEqual(['question', 'elsewhere']);
    await at.say('turn.end', { outcome: 'completed' });
    expect(offered()).toEqual(['question', 'elsewhere', 'second']);
    const second = (await at.link.turn()).turn_id!;
    await at.link.say('turn.accepted', {}, { turn_id: second });
    await at.link.say('turn.end', { outcome: 'completed' }, { turn_id: second });
    expect(offered()).toEqual(['question', 'elsewhere', 'second', 'third']);
  });

  test('TRN5: no more turns than the tenant may run at once; the next starts when one ends', async () => {
    const at = await stage({ config: { running_turns: 1 } });
    const other = (await at.phone.request('channel.create', { name: 'Other' })).payload.chat_id as unknown as string;
    await at.phone.send('elsewhere', {}, { chat_id: other });
    const offered = () => at.link.received().filter(({ type }) => type === 'turn.start');
    expect(offered()).toHaveLength(1);
    await at.say('turn.end', { outcome: 'completed' });
    expect(offered()).toHaveLength(2);
  });

  test('MSG13: a command goes at once, also while a turn runs, and sends no busy or idle of its own then', async () => {
    const at = await stage();
    await at.link.say('commands.catalog', { commands: [{ name: '/status', description: 'How it is', aliases: ['/st'] }] });
    await at.phone.send('/ST now');
    const command = await at.link.turn();
    expect(command.payload.kind).toBe('command');
    const turn_id = command.turn_id!;
    await at.link.say('turn.accepted', {}, { turn_id });
    await at.link.say('message', { message_id: 'c1', text: 'all well' }, { turn_id });
    await at.link.say('turn.end', { outcome: 'completed' }, { turn_id });
    expect(told(at)).toEqual(['agent.busy', 'message', 'message']);
    await at.say('turn.end', { outcome: 'completed' });
    expect(told(at).at(-1)).toBe('agent.idle');
  });

  test('DEL5: a running message that was deleted is not heard of again; the turn goes on', async () => {
    const at = await stage();
    await at.say('message.start', { message_id: 'm1', role: 'assistant' });
    const { message_id } = at.edge.frames('message.start')[0]!.payload;
    await at.phone.request('message.delete', { message_ids: [message_id] }, lane);
    const before = at.edge.ephemerals().length;
    await at.link.update('message.update', { message_id: 'm1', text: 'secret' }, at.turn_id);
    await at.say('message.stop', { message_id: 'm1', final_text: 'secret' });
    await at.say('turn.end', { outcome: 'completed' });
    expect(at.edge.ephemerals()).toHaveLength(before);
    expect(told(at)).toEqual(['agent.busy', 'message.start', 'message.deleted', 'agent.idle']);
    expect(JSON.stringify(await at.log())).not.toContain('secret');
    expect((await history(at)).map(({ text }) => text)).toEqual(['question']);
  });
});

describe('an agent that goes away', () => {
  test('LNK31: the same process back within the grace: devices see nothing of it', async () => {
    const at = await stage();
    await at.say('message.start', { message_id: 'm1', role: 'assistant' });
    await at.link.update('message.update', { message_id: 'm1', text: 'half' }, at.turn_id);
    await at.link.gone();
    await at.clock.advance(25_000);
    const back = at.agent({ seq: at.link.seq });
    const hello = await back.hello({ last_seq: 1, open_turns: [at.turn_id] });
    expect(hello.sent[0]?.payload.turns).toMatchObject([
      { turn_id: at.turn_id, state: 'running', messages: [{ message_id: 'm1', length: 4 }] },
    ]);
    for (let i = 0; i < 20; i++) {
      await at.clock.advance(3_000);
      await back.held();
    }
    expect(await logged(at)).toEqual(['agent.busy', 'message.start']);
    await back.say('message.stop', { message_id: 'm1', final_text: 'half and half' }, { turn_id: at.turn_id });
    await back.say('turn.end', { outcome: 'completed' }, { turn_id: at.turn_id });
    expect(await logged(at)).toEqual(['agent.busy', 'message.start', 'message.stop', 'agent.idle']);
  });

  test('STR7, TOO3, PIC12: past the grace the turn is closed with what there is', async () => {
    const at = await stage();
    await at.say('message.start', { message_id: 'm1', role: 'assistant' });
    await at.link.update('message.update', { message_id: 'm1', text: 'half' }, at.turn_id);
    await at.say('tool.start', { index: 3, name: 'terminal' });
    await at.say('picker.choice', { picker_id: 'p1', title: 'Which?', choices: [{ value: 'a', label: 'A' }] });
    await at.link.gone();
    await at.clock.advance(29_000);
    expect(told(at).slice(-1)).toEqual(['picker.choice']);
    await at.clock.advance(3_000);
    const log = await at.log();
    expect(types(log.slice(-4))).toEqual(['message.stop', 'tool.end', 'picker.closed', 'agent.idle']);
    expect(log.at(-4)?.payload).toMatchObject({ final_text: 'half', interrupted: true });
    expect(log.at(-3)?.payload).toEqual({ index: 3, name: 'terminal', ok: false });
    expect((await history(at)).at(-1)).toMatchObject({ text: 'half', interrupted: true });
    expect((await at.store.turns.get(tenant, at.turn_id as never))?.outcome).toBe('interrupted');
  });

  test('STR8: a final that comes after that takes the place of what was cut short', async () => {
    const at = await stage();
    await at.say('message.start', { message_id: 'm1', role: 'assistant' });
    await at.link.update('message.update', { message_id: 'm1', text: 'half' }, at.turn_id);
    await at.link.gone();
    await at.clock.advance(40_000);
    const back = at.agent({ seq: at.link.seq });
    await back.hello({ last_seq: 1, open_turns: [at.turn_id] });
    await back.say('message.stop', { message_id: 'm1', final_text: 'whole' }, { turn_id: at.turn_id });
    await back.say('turn.end', { outcome: 'completed' }, { turn_id: at.turn_id });
    const [stop] = (await at.log()).filter(({ type }) => type === 'message.stop');
    const late = (await at.log()).at(-1);
    expect(late).toMatchObject({ type: 'message', payload: { message_id: stop?.payload.message_id, text: 'whole', late: true } });
    expect((await history(at)).map(({ text, late, interrupted }) => [text, late, interrupted])).toEqual([
      ['question', false, false],
      ['whole', true, false],
    ]);
    expect((await at.log()).filter(({ type }) => type === 'agent.idle')).toHaveLength(1);
  });

  test('HEL22 MSG10: who joins is told under which rev a running text is what it is, and its thoughts likewise', async () => {
    const at = await stage();
    await at.say('message.start', { message_id: 'm1', role: 'assistant' });
    await at.link.update('message.update', { message_id: 'm1', text: 'one' }, at.turn_id);
    await at.link.update('message.update', { message_id: 'm1', text: 'one', reasoning: 'hm' }, at.turn_id);
    const live = (type: string) => at.edge.ephemerals().findLast((one) => one.type === type)!;
    const [text, thought] = [live('message.update'), live('reasoning.delta')];
    expect(thought.rev).toBeGreaterThan(text.rev);
    const tablet = await at.device('tablet').hello();
    expect(tablet.revs).toEqual([
      [text.key, text.rev],
      [thought.key, thought.rev],
    ]);
  });

  test('LNK33: another process that had not got the turn is offered it, one attempt further', async () => {
    const at = await stage({ accept: false });
    await at.link.gone();
    const back = at.agent({ boot_id: 'boot2' });
    const { sent } = await back.hello({ last_seq: 0 });
    const starts = sent.filter(({ type }) => type === 'turn.start');
    expect(starts).toMatchObject([{ turn_id: at.turn_id, payload: { attempt: 2 } }]);
    // What was taken back keeps its number, so that none is missing.
    expect(sent.slice(1).map(({ seq }) => seq)).toEqual([1, 2]);
  });

  test('LNK33: one that the old process had and not accepted is sent again when the new one had time to say otherwise', async () => {
    const at = await stage({ accept: false });
    await at.link.ack(1);
    await at.link.gone();
    const back = at.agent({ boot_id: 'boot2' });
    expect((await back.hello({ last_seq: 1 })).sent.map(({ type }) => type)).toEqual(['hello.ack', 'commands.catalog']);
    await back.held();
    await at.clock.advance(6_000);
    expect(await back.turn()).toMatchObject({ turn_id: at.turn_id, payload: { attempt: 2 } });
  });

  test('TRN8: a new process that still says that the turn was accepted is not offered it again', async () => {
    const at = await stage({ accept: false });
    await at.link.ack(1);
    await at.link.gone();
    const back = at.agent({ boot_id: 'boot2', seq: 0 });
    await back.hello({ last_seq: 1 });
    await back.say('turn.accepted', {}, { turn_id: at.turn_id });
    await back.say('turn.end', { outcome: 'completed' }, { turn_id: at.turn_id });
    await back.held();
    await at.clock.advance(10_000);
    expect(back.received().filter(({ type }) => type === 'turn.start')).toEqual([]);
    expect(told(at)).toEqual(['agent.busy', 'agent.idle']);
  });

  test('TRN8: each new process has its own time to say so, however long ago the one before it came', async () => {
    const at = await stage({ accept: false });
    await at.link.ack(1);
    await at.link.gone();
    const second = at.agent({ boot_id: 'boot2', seq: 0 });
    await second.hello({ last_seq: 1 });
    await at.clock.advance(4_900);
    await second.gone();
    const third = at.agent({ boot_id: 'boot3', seq: 0 });
    await third.hello({ last_seq: 1 });
    // The second's time ends here.
    await at.clock.advance(200);
    await third.say('turn.accepted', {}, { turn_id: at.turn_id });
    await third.say('turn.end', { outcome: 'completed' }, { turn_id: at.turn_id });
    await third.held();
    await at.clock.advance(10_000);
    expect(third.received().filter(({ type }) => type === 'turn.start')).toEqual([]);
    expect(told(at)).toEqual(['agent.busy', 'agent.idle']);
  });

  test('LNK33: …and is offered it again when that is over', async () => {
    const at = await stage({ accept: false });
    await at.link.ack(1);
    await at.link.gone();
    const second = at.agent({ boot_id: 'boot2', seq: 0 });
    await second.hello({ last_seq: 1 });
    await at.clock.advance(4_900);
    await second.gone();
    const third = at.agent({ boot_id: 'boot3', seq: 0 });
    await third.hello({ last_seq: 1 });
    await third.held();
    await at.clock.advance(6_000);
    expect(await third.turn()).toMatchObject({ turn_id: at.turn_id, payload: { attempt: 2 } });
  });

  test('TRN8: one that was offered again, and turns out to have been accepted before, is not offered on the next link', async () => {
    const at = await stage({ accept: false });
    await at.link.ack(1);
    await at.link.gone();
    const second = at.agent({ boot_id: 'boot2', seq: 0 });
    await second.hello({ last_seq: 1 });
    await second.held();
    await at.clock.advance(6_000);
    expect(await second.turn()).toMatchObject({ seq: expect.any(Number), payload: { attempt: 2 } });
    // The offer was lost on its way; what the first process had said comes late.
    await second.say('turn.accepted', {}, { turn_id: at.turn_id });
    await second.gone();
    const back = await at.agent({ boot_id: 'boot2', seq: second.seq }).hello({ last_seq: 1, open_turns: [at.turn_id] });
    expect(back.sent.map(({ type }) => type)).not.toContain('turn.start');
  });

  test('LNK34: another process that does not go on with an accepted turn: it ends as interrupted', async () => {
    const at = await stage();
    await at.say('message.start', { message_id: 'm1', role: 'assistant' });
    await at.link.gone();
    const back = at.agent({ boot_id: 'boot2', seq: at.link.seq });
    await back.hello({ last_seq: 1 });
    await back.held();
    await at.clock.advance(6_000);
    expect(told(at)).toEqual(['agent.busy', 'message.start', 'message.stop', 'agent.idle']);
    expect(back.received().filter(({ type }) => type === 'turn.start')).toEqual([]);
  });

  test('LNK34: another process that goes on with it: nothing is closed', async () => {
    const at = await stage();
    await at.link.gone();
    const back = at.agent({ boot_id: 'boot2', seq: at.link.seq });
    await back.hello({ last_seq: 1, open_turns: [at.turn_id] });
    for (let i = 0; i < 20; i++) {
      await back.held();
      await at.clock.advance(3_000);
    }
    expect(told(at)).toEqual(['agent.busy']);
  });

  test('LNK16, CLS5: a newer link takes over; what the older says has no effect and it is closed', async () => {
    const at = await stage();
    const newer = at.agent({ seq: at.link.seq });
    await newer.hello({ last_seq: 1, open_turns: [at.turn_id] });
    expect(at.edge.closes()).toMatchObject([{ connection_id: at.link.connection_id, code: 4409 }]);
    expect(await at.say('message', { message_id: 'm1', text: 'from the grave' })).toMatchObject({
      type: 'error',
      payload: { code: 'auth' },
    });
    expect(at.edge.frames('message')).toHaveLength(1);
  });
});

describe('stopping', () => {
  test('STO1, STO2: the agent is told, and ends the turn', async () => {
    const at = await stage();
    expect(await at.phone.request('agent.stop', {}, lane)).toEqual({ v: 1, type: 'ack', payload: { ok: true } });
    expect(at.link.received().at(-1)).toMatchObject({ type: 'agent.stop', turn_id: at.turn_id, seq: 2 });
    await at.say('turn.end', { outcome: 'cancelled' });
    expect(told(at)).toEqual(['agent.busy', 'agent.idle']);
  });

  test('STO3, TRN3: an agent that does not answer loses the turn; its end, when it comes, changes nothing', async () => {
    const at = await stage();
    await at.say('message.start', { message_id: 'm1', role: 'assistant' });
    await at.phone.request('agent.stop', {}, lane);
    for (let i = 0; i < 4; i++) {
      await at.clock.advance(2_500);
      await at.link.held();
    }
    await at.clock.advance(1_000);
    expect(await logged(at)).toEqual(['agent.busy', 'message.start', 'message.stop', 'agent.idle']);
    expect((await at.store.turns.get(tenant, at.turn_id as never))?.outcome).toBe('cancelled');
    await at.say('turn.end', { outcome: 'completed' });
    expect(await logged(at)).toHaveLength(4);
  });

  test('STO1: a stop in the same breath as the send reaches what was sent', async () => {
    const at = await rig();
    const phone = at.device('phone');
    await phone.hello();
    const link = at.agent();
    await link.hello();
    at.edge.send([phone.make('message.send', { text: 'question' }), phone.make('agent.stop', {}, lane)]);
    await at.clock.settle();
    expect(types(link.received())).toEqual(['turn.start', 'agent.stop']);
    const { turn_id } = link.received()[0]!;
    await link.say('turn.accepted', {}, { turn_id: turn_id! });
    await link.say('turn.end', { outcome: 'cancelled' }, { turn_id: turn_id! });
    expect(types(at.edge.frames())).toEqual(['message', 'agent.busy', 'agent.idle']);
  });

  test('STO2: with nothing running nothing happens', async () => {
    const at = await rig();
    const phone = at.device('phone');
    await phone.hello();
    const link = at.agent();
    await link.hello();
    expect((await phone.request('agent.stop', {}, lane)).type).toBe('ack');
    expect(link.received()).toEqual([]);
    expect(at.edge.frames()).toEqual([]);
  });

  test('STO1: while no agent is there, what waits first is taken back', async () => {
    const at = await rig();
    const phone = at.device('phone');
    await phone.hello();
    await phone.send('first');
    await phone.send('second');
    await phone.request('agent.stop', {}, lane);
    const link = at.agent();
    await link.hello();
    expect((await link.turn()).payload.message).toMatchObject({ text: 'second' });
  });

  test('STO1: `/stop` is a stop, and is shown like any message', async () => {
    const at = await stage();
    expect((await at.phone.send('/stop')).payload.text).toBe('/stop');
    expect(at.link.received().at(-1)).toMatchObject({ type: 'agent.stop', turn_id: at.turn_id });
  });
});

describe('nobody there', () => {
  test('TRN9, MSG12: messages wait, one notice a lane; an agent that comes gets them in order', async () => {
    const at = await rig({ config: { notice_ms: 2_000 } });
    const phone = at.device('phone');
    await phone.hello();
    await phone.send('one');
    await phone.send('two');
    expect(at.edge.frames()).toHaveLength(2);
    await at.clock.advance(2_500);
    expect(at.edge.frames('message').map(({ payload }) => payload.role)).toEqual(['user', 'user', 'system']);
    await phone.send('three');
    await at.clock.advance(5_000);
    expect(at.edge.frames('message').filter(({ payload }) => (payload.role as unknown) === 'system')).toHaveLength(1);
    const link = at.agent();
    await link.hello();
    for (const text of ['one', 'two', 'three']) {
      const turn = await link.turn();
      expect(turn.payload.message).toMatchObject({ text });
      await link.say('turn.accepted', {}, { turn_id: turn.turn_id! });
      await link.say('turn.end', { outcome: 'completed' }, { turn_id: turn.turn_id! });
    }
  });

  test('LIM5, ERR4: no more may wait than the quota says', async () => {
    const at = await rig({ config: { waiting_per_lane: 3 } });
    const phone = at.device('phone');
    await phone.hello();
    for (const text of ['1', '2', '3']) expect((await phone.send(text)).type).toBe('message');
    const refused = await phone.send('4');
    expect(refused).toMatchObject({ type: 'error', payload: { code: 'rate_limited' } });
    expect(refused.payload.retry_after_ms).toBeGreaterThanOrEqual(1);
  });
});

describe('what is lost', () => {
  test('LNK35, OUT13: the outbox comes back empty in mid-turn; the agent’s snapshot rebuilds what goes on', async () => {
    const at = await stage({ config: { cursor_block: 100 } });
    await at.say('message.start', { message_id: 'm1', role: 'assistant' });
    at.outbox.forgetEverything();
    const tablet = at.device('tablet');
    await tablet.hello();
    expect(at.edge.closes()).toMatchObject([{ connection_id: at.link.connection_id, code: 1012 }]);
    await at.link.gone();
    const back = at.agent({ seq: at.link.seq });
    await back.hello({ last_seq: 1, open_turns: [at.turn_id] });
    await back.say(
      'turn.snapshot',
      { messages: [{ message_id: 'm1', role: 'assistant', text: 'so far' }], tools: [], pickers: [], reason: 'processing' },
      { turn_id: at.turn_id },
    );
    const frames = (await at.device('desk').hello()).frames.map((frame) => JSON.parse(frame) as Frame);
    expect(frames.map(({ type, payload }) => [type, payload.text ?? payload.reason])).toEqual([
      ['agent.busy', 'processing'],
      ['message.start', undefined],
      ['message.update', 'so far'],
    ]);
    await back.say('message.stop', { message_id: 'm1', final_text: 'so far so good' }, { turn_id: at.turn_id });
    await back.say('turn.end', { outcome: 'completed' }, { turn_id: at.turn_id });
    expect(types(at.edge.frames()).slice(-2)).toEqual(['message.stop', 'agent.idle']);
  });

  test('ENV24, TRN3: the instance dies in mid-turn; another closes what the agent never comes back for', async () => {
    const at = await stage();
    await at.say('message.start', { message_id: 'm1', role: 'assistant' });
    await at.link.update('message.update', { message_id: 'm1', text: 'half' }, at.turn_id);
    at.kill(0);
    await at.start('s2');
    at.edge.use('s2');
    await at.clock.advance(45_000);
    const log = await at.log();
    expect(types(log)).toEqual(['message', 'agent.busy', 'message.start', 'message.stop', 'agent.idle']);
    expect(log.at(-2)?.payload).toMatchObject({ final_text: 'half', interrupted: true });
  });

  test('TRN3: silence of a line that was broken is not taken for the agent’s absence', async () => {
    const at = await stage();
    const bus = at.sessionBus(0);
    bus.setConnected(false);
    await at.clock.advance(60_000);
    bus.setConnected(true);
    await at.clock.advance(3_000);
    await at.link.held();
    await at.clock.advance(5_000);
    await at.link.held();
    await at.clock.advance(5_000);
    expect((await at.store.turns.open(tenant)).map(({ state }) => state)).toEqual(['running']);
  });

  test('LNK8: frames that the bus loses are sent again, in order, until they are acked', async () => {
    const at = await stage();
    const received = () =>
      at.link
        .received()
        .filter(({ seq }) => seq !== undefined)
        .map(({ seq }) => seq);
    expect(received()).toEqual([1]);
    await at.clock.advance(5_000);
    expect(received().length).toBeGreaterThan(1);
    expect(new Set(received())).toEqual(new Set([1]));
    await at.link.ack(1);
    const before = received().length;
    for (let i = 0; i < 10; i++) {
      await at.clock.advance(3_000);
      await at.link.held();
    }
    expect(received()).toHaveLength(before);
    expect(await at.store.agentFrames.after(tenant, agent_id, 0)).toEqual([]);
  });
});
