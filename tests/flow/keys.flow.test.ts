/** What is said again after the keys by which a repeat is known have expired: ids alone must tell. */
import { lane, onStage } from '@iris/testkit';
import { expect, test } from '@jest/globals';

/** The upkeep drops keys within two seconds, here. */
const soon = { worker_config: { keys_ms: 1_000, keys_kept_ms: 1_000 } };
const choices = [{ value: 'yes', label: 'Yes' }];

test('MSG4 LNK25 LNK26 LNK27: a send and a final that come again after their keys went are the first ones still', () =>
  onStage(async ({ world, tenant, agent, a, b }) => {
    const first = await a.send('once', { client_ref: 'ref' });
    const turn = await agent.turn();
    const own = turn.message('the answer');
    turn.end();
    await b.next('agent.idle');
    await world.advance(5_000);
    const before = tenant.log.length;

    const again = await a.send('once', { client_ref: 'ref' });
    expect(again.payload).toEqual(first.payload);
    // Under new numbers of the link: by the agent's id of it, and by another.
    turn.say('message', { message_id: own, role: 'assistant', text: 'the answer' });
    turn.say('message', { message_id: 'recovered', role: 'assistant', text: 'the answer' });
    await world.advance(5_000);
    expect(tenant.log).toHaveLength(before);
    expect((await b.historyAll(lane)).map(({ text }) => text)).toEqual(['once', 'the answer']);
    expect(agent.received.all.filter(({ type }) => type === 'turn.start')).toHaveLength(1);
  }, soon));

test('DEL5 DEL6: what was deleted stays deleted when its agent says it again after the keys went', () =>
  onStage(async ({ world, tenant, agent, a, b }) => {
    const sent = await a.send('delete both', { client_ref: 'ref' });
    const turn = await agent.turn();
    const own = turn.message('the answer');
    turn.end();
    const said = await b.next(({ type, payload }) => type === 'message' && payload.role === 'assistant');
    await b.next('agent.idle');
    await a.request('message.delete', { message_ids: [sent.payload.message_id!, said.payload.message_id!] }, lane);
    await world.advance(5_000);
    const before = tenant.log.length;

    turn.say('message', { message_id: own, role: 'assistant', text: 'the answer' });
    expect(await a.send('delete both', { client_ref: 'ref' })).toMatchObject({ type: 'error', payload: { code: 'not_found' } });
    await world.advance(5_000);
    expect(tenant.log).toHaveLength(before);
    expect(await b.historyAll(lane)).toEqual([]);
  }, soon));

test('PIC8 PIC14: an answered picker whose row went is answered still, and does not open again with its turn', () =>
  onStage(async ({ world, tenant, agent, a, b }) => {
    await a.send('may I?');
    const turn = await agent.turn();
    const own = turn.picker('choice', { choices, expires_at: world.time.now() + 1_000 });
    const { picker_id } = (await a.next('picker.choice')).payload;
    expect(await a.request('picker.select', { picker_id: picker_id!, value: 'yes' })).toMatchObject({ type: 'ack' });
    turn.end();
    await b.next('agent.idle');
    await world.advance(5_000);
    expect(await world.store.pickers.get(tenant.tenant_id, picker_id as never)).toBeUndefined();
    const before = tenant.log.length;

    turn.say('picker.choice', { picker_id: own, choices });
    expect(await b.request('picker.select', { picker_id: picker_id!, value: 'yes' })).toMatchObject({ payload: { code: 'not_found' } });
    await world.advance(5_000);
    expect(tenant.log).toHaveLength(before);
    const late = await tenant.join('late');
    expect(late.frames('picker.choice')).toEqual([]);
  }, soon));
