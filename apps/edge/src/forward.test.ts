import { ownerOf } from '@iris/bus';
import { describe, expect, test } from '@jest/globals';
import { rig } from './testing/rig.js';
import { bytes, type Request, tenant } from './testing/scripted-session.js';

const asked = (requests: readonly Request[]) => requests.filter((one) => one.type !== 'hello').map((one) => [one.type, one.n, one.base]);
const history = { type: 'history', chat_id: 'c', payload: {} };
const answerOf = () => ({ body: bytes({ type: 'history', payload: { messages: [] } }) });

describe('hop one', () => {
  test('ORD2 requests carry rising numbers and the lowest unanswered one; one bus request a turn', async () => {
    const { device, session, clock } = await rig();
    const socket = await device();
    socket.say({ id: 1, ...history });
    socket.say({ id: 2, ...history });
    await clock.settle();
    session.answer(session.requests[1]!, answerOf());
    await clock.settle();
    socket.say({ id: 3, ...history });
    await clock.settle();
    expect(asked(session.requests)).toEqual([
      ['history', 2, 2],
      ['history', 3, 2],
      ['history', 4, 3],
    ]);
  });

  test('ENV24 what has no answer is sent again with the same number, and answered once', async () => {
    const { device, session, clock, meter } = await rig();
    const socket = await device();
    socket.say({ id: 1, ...history });
    await clock.advance(1_300);
    expect(asked(session.requests)).toEqual([
      ['history', 2, 2],
      ['history', 2, 2],
    ]);
    for (const request of session.requests.slice(1)) session.answer(request, answerOf());
    await clock.advance(5_000);
    expect(socket.heard.slice(2)).toHaveLength(1);
    expect(session.requests).toHaveLength(3);
    expect(meter.total('iris_edge_resends_total')).toBe(1);
  });

  test('ENV24 an instance that nobody serves any more is left at once, with everything it had, in order', async () => {
    const { device, session, another, clock } = await rig();
    const second = another('s2');
    await clock.settle();
    const [owner, other] =
      ownerOf(tenant, [session.session_id, second.session_id]) === session.session_id ? [session, second] : [second, session];
    const socket = await device();
    socket.say({ id: 1, ...history });
    socket.say({ id: 2, ...history });
    await clock.settle();
    expect(asked(owner.requests)).toHaveLength(2);
    owner.die();
    // The next one finds nobody there.
    socket.say({ id: 3, ...history });
    await clock.settle();
    expect(asked(other.requests)).toEqual([
      ['history', 2, 2],
      ['history', 3, 2],
      ['history', 4, 2],
    ]);
    for (const request of other.requests) if (request.type === 'history') other.answer(request, answerOf());
    await clock.settle();
    expect(socket.heard.slice(2).map((one) => one.id)).toEqual([1, 2, 3]);
  });

  test('ENV24 an instance that falls silent is given up when its announcements stop', async () => {
    const { device, session, another, clock } = await rig();
    const second = another('s2');
    await clock.settle();
    const [owner, other] =
      ownerOf(tenant, [session.session_id, second.session_id]) === session.session_id ? [session, second] : [second, session];
    const socket = await device();
    socket.say({ id: 1, ...history });
    await clock.settle();
    // Frozen: it hears everything and says nothing.
    owner.leave();
    await clock.advance(1_500);
    expect(asked(other.requests)).toEqual([['history', 2, 2]]);
  });

  test('ORD2 a change of instance waits for the answers that are under way', async () => {
    const { device, session, another, clock } = await rig();
    const socket = await device();
    socket.say({ id: 1, ...history });
    await clock.settle();
    // Instances come until the tenant is another one's.
    let newer = session;
    for (let i = 2; newer === session; i++) {
      const next = another(`s${i}`);
      await clock.settle();
      if (ownerOf(tenant, [session.session_id, next.session_id]) === next.session_id) newer = next;
      else next.leave();
    }
    await clock.settle();
    socket.say({ id: 2, ...history });
    socket.say({ id: 3, ...history });
    await clock.settle();
    expect(asked(newer.requests)).toEqual([]);
    expect(asked(session.requests)).toHaveLength(1);
    session.answer(session.requests.at(-1)!, answerOf());
    await clock.settle();
    expect(asked(newer.requests)).toEqual([
      ['history', 3, 3],
      ['history', 4, 3],
    ]);
  });

  test('ENV23 with no instance at all requests wait for one, until their deadline', async () => {
    const { device, session, another, clock } = await rig();
    const socket = await device();
    session.die();
    socket.say({ id: 1, ...history });
    await clock.advance(5_000);
    socket.pong();
    socket.say({ id: 2, ...history });
    await clock.advance(5_500);
    expect(socket.heard.slice(2)).toMatchObject([{ id: 1, type: 'error', payload: { code: 'internal' } }]);
    const next = another('s2');
    await clock.settle();
    expect(asked(next.requests)).toEqual([['history', 3, 3]]);
  });

  test('C14 what a device asked before it left is still asked, and gone is said after it', async () => {
    const { device, session, another, clock, edge } = await rig();
    const socket = await device();
    session.die();
    socket.say({ id: 1, type: 'message.send', payload: { text: 'last words' } });
    socket.drop();
    await clock.advance(4_000);
    expect(edge.stats()).toMatchObject({ devices: 0, known: 1, in_flight: 1 });
    const next = another('s2');
    next.handlers.set('message.send', () => ({ cursor: 1 }));
    await clock.settle();
    expect(asked(next.requests)).toEqual([['message.send', 2, 2]]);
    expect(next.others).toMatchObject([{ kind: 'gone', peer: 'device', device_id: 'd1' }]);
    expect(edge.stats()).toMatchObject({ known: 0, in_flight: 0 });
  });
});
