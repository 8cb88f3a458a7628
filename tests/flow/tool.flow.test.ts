import { lane, onStage } from '@iris/testkit';
import { expect, test } from '@jest/globals';

test('TOO1 TOO2 OUT4: start, progress and end of a tool, on every device', () =>
  onStage(async ({ world, agent, a, b }) => {
    await a.send('run it');
    const turn = await agent.turn();
    turn.toolStart(3, 'terminal', { preview: 'pytest -q', args: { command: 'pytest -q', env: { deep: [1, null, 'x'] } } });
    turn.toolProgress(3, 'running…');
    await b.next('tool.progress');
    turn.toolEnd(3, { ok: true, duration: 12.4, output_preview: '12 passed' });
    turn.end();
    await b.next('agent.idle');
    await world.settle();
    for (const device of [a, b]) {
      expect(device.frames('tool.start')).toMatchObject([
        {
          ...lane,
          payload: { index: 3, name: 'terminal', preview: 'pytest -q', args: { command: 'pytest -q', env: { deep: [1, null, 'x'] } } },
        },
      ]);
      expect(device.frames('tool.progress')).toMatchObject([{ payload: { index: 3, name: 'terminal', note: 'running…' } }]);
      expect(device.frames('tool.end')).toMatchObject([
        { payload: { index: 3, name: 'terminal', ok: true, duration: 12.4, output_preview: '12 passed' } },
      ]);
    }
  }));

test('OUT3 OUT4: progress of a slow device is coalesced by tool, starts and ends are not', () =>
  onStage(
    async ({ world, agent, a, b }) => {
      await a.send('run them');
      const turn = await agent.turn();
      b.pause();
      for (let index = 0; index < 5; index++) turn.toolStart(index, 'terminal', { preview: 'x'.repeat(20_000) });
      for (let i = 0; i < 200; i++) {
        turn.toolProgress(i % 5, `${'y'.repeat(1_000)} ${i}`);
        await world.advance(20);
      }
      for (let index = 0; index < 5; index++) turn.toolEnd(index);
      turn.end();
      await a.next('agent.idle');
      b.resume();
      await b.next('agent.idle');
      expect(b.frames('tool.start')).toHaveLength(5);
      expect(b.frames('tool.end')).toHaveLength(5);
      expect(b.frames('tool.progress').length).toBeLessThan(a.frames('tool.progress').length);
    },
    { window_bytes: 8 * 1024, edge_config: { high_mark_bytes: 32 * 1024, low_mark_bytes: 8 * 1024 } },
  ));

test('TYP1 TYP2 OUT5: typing is live, not stored, and ends by itself after 10 s', () =>
  onStage(async ({ world, tenant, agent, a, b }) => {
    await a.send('question');
    const turn = await agent.turn();
    turn.typing();
    await b.next((frame) => frame.type === 'typing' && frame.payload.on === true);
    const start = world.time.now();
    await b.next((frame) => frame.type === 'typing.stop' || (frame.type === 'typing' && frame.payload.on === false));
    expect(world.time.now() - start).toBeGreaterThanOrEqual(9_500);
    expect(world.time.now() - start).toBeLessThanOrEqual(11_500);
    expect(tenant.log.map(({ frame }) => frame.type)).not.toContain('typing');
    turn.end();
    await b.next('agent.idle');
  }));

test('NOT1 NOT2: an agent’s notification reaches every device and sync', () =>
  onStage(async ({ tenant, agent, b }) => {
    const away = await tenant.join('desk');
    away.cut();
    agent.say('notification', { kind: 'generic', title: 'ARIA', body: 'Something happened', ts: 1 }, lane);
    expect(await b.next('notification')).toMatchObject({
      ...lane,
      payload: { kind: 'generic', title: 'ARIA', body: 'Something happened', ts: expect.any(Number) },
    });
    await away.join();
    await away.sync();
    expect(away.frames('notification')).toHaveLength(1);
  }));
