import { manualClock } from '@iris/runtime/testing';
import { expect, test } from '@jest/globals';
import { type Part, type Running, restart_ms, supervise } from './supervise.js';

/** A part whose processes die when the test says so. */
function fakePart(part: string, index = 0) {
  const living: { pid: number; die: () => void }[] = [];
  const stopped: number[] = [];
  let failures = 0;
  let pid = 100 * (index + 1);
  const self: Part = {
    part,
    index,
    async start(): Promise<Running> {
      if (failures > 0) {
        failures -= 1;
        throw new Error('will not');
      }
      let die = () => {};
      const ended = new Promise<void>((resolve) => {
        die = resolve;
      });
      const mine = ++pid;
      living.push({ pid: mine, die });
      return { pid: mine, port: 8080, ended, stop: async () => void stopped.push(mine) };
    },
  };
  return {
    self,
    stopped,
    starts: () => living.length,
    fail: (times: number) => {
      failures = times;
    },
    kill: () => living.at(-1)!.die(),
  };
}
function setup(restart = true) {
  const clock = manualClock();
  const said: string[] = [];
  let changes = 0;
  const supervisor = supervise({ restart, clock, say: (line) => said.push(line), changed: () => changes++ });
  return { clock, said, supervisor, changes: () => changes };
}

test('a part that dies is started again a second later, and the list says so at each moment', async () => {
  const { clock, supervisor, said, changes } = setup();
  const edge = fakePart('edge');
  await supervisor.start(edge.self);
  expect(supervisor.list()).toEqual([{ part: 'edge', index: 0, pid: 101, port: 8080 }]);
  edge.kill();
  await clock.settle();
  expect(supervisor.list()).toEqual([]);
  await clock.advance(restart_ms - 1);
  expect(edge.starts()).toBe(1);
  await clock.advance(1);
  await clock.settle();
  expect(supervisor.list()).toEqual([{ part: 'edge', index: 0, pid: 102, port: 8080 }]);
  expect(changes()).toBe(3);
  expect(said).toEqual(['edge 0 (pid 101) died; starting it again', 'edge 0 runs again (pid 102)']);
});

test('one that cannot be started again is tried every second', async () => {
  const { clock, supervisor } = setup();
  const redis = fakePart('redis');
  await supervisor.start(redis.self);
  redis.fail(3);
  redis.kill();
  for (let i = 0; i < 4; i++) {
    await clock.settle();
    await clock.advance(restart_ms);
  }
  await clock.settle();
  expect(supervisor.list()).toMatchObject([{ pid: 102 }]);
});

test('without restart the dead stay dead', async () => {
  const { clock, supervisor } = setup(false);
  const edge = fakePart('edge');
  await supervisor.start(edge.self);
  edge.kill();
  await clock.settle();
  await clock.advance(10 * restart_ms);
  expect([edge.starts(), supervisor.list()]).toEqual([1, []]);
});

test('stopping goes backwards, group by group, and nothing is started after it', async () => {
  const { clock, supervisor } = setup();
  const order: string[] = [];
  const parts = ['redis', 'edge'].map((name) => fakePart(name));
  for (const part of parts) {
    const { start } = part.self;
    (part.self as { start: Part['start'] }).start = async () => {
      const one = await start();
      return { ...one, stop: async () => void order.push(part.self.part) };
    };
    await supervisor.start(part.self);
  }
  await supervisor.stop();
  expect(order).toEqual(['edge', 'redis']);
  for (const part of parts) part.kill();
  await clock.settle();
  await clock.advance(10 * restart_ms);
  expect(parts.map((part) => part.starts())).toEqual([1, 1]);
});

test('a part that dies while everything stops is not waited for', async () => {
  const { clock, supervisor } = setup();
  const edge = fakePart('edge');
  await supervisor.start(edge.self);
  edge.kill();
  await clock.settle();
  await supervisor.stop();
  await clock.advance(10 * restart_ms);
  await clock.settle();
  expect(edge.starts()).toBe(1);
});

test('when one of a group cannot be started the first time, its fault is thrown, and the others can be stopped', async () => {
  const { supervisor } = setup();
  const good = fakePart('edge', 0);
  const bad = fakePart('edge', 1);
  bad.fail(1);
  await expect(supervisor.start(good.self, bad.self)).rejects.toThrow('will not');
  await supervisor.stop();
  expect(good.stopped).toEqual([101]);
});
