import { describe, expect, test } from '@jest/globals';
import { lifecycle, type ProcessEvents, runProcess } from './lifecycle.js';
import { silentLog } from './log.js';
import { manualClock } from './testing.js';

const make = (stop_ms = 1_000) => {
  const clock = manualClock();
  return { clock, life: lifecycle({ log: silentLog, clock, stop_ms }) };
};
const gate = () => {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, opened };
};

describe('lifecycle', () => {
  test('stops backwards, each waited for, once', async () => {
    const { life } = make();
    const seen: string[] = [];
    const bus = await life.start(
      'bus',
      () => 'bus',
      async (it) => {
        await Promise.resolve();
        seen.push(`-${it}`);
      },
    );
    await life.start(
      'edge',
      async () => `edge on ${bus}`,
      (it) => seen.push(`-${it}`),
    );
    await life.start('nothing to stop', () => 1);
    const reports = await Promise.all([life.stop(), life.stop()]);
    expect(seen).toEqual(['-edge on bus', '-bus']);
    expect(reports).toEqual([{ left: [] }, { left: [] }]);
    await expect(life.start('late', () => 1)).rejects.toThrow('late: not started');
  });

  test('a start that fails stops what was started, and says why', async () => {
    const { life } = make();
    const seen: string[] = [];
    await life.start(
      'a',
      () => 1,
      () => seen.push('a stopped'),
    );
    await expect(
      life.start('b', () => {
        throw new Error('no port');
      }),
    ).rejects.toThrow('no port');
    expect(seen).toEqual(['a stopped']);
    expect(life.stopping).toBe(true);
  });

  test('the deadline holds for all together; what is late or fails is named, the rest is still stopped', async () => {
    const { life, clock } = make(1_000);
    const seen: string[] = [];
    await life.start(
      'first',
      () => 1,
      () => seen.push('first'),
    );
    await life.start(
      'fails',
      () => 1,
      () => Promise.reject(new Error('no')),
    );
    await life.start(
      'hangs',
      () => 1,
      () => new Promise(() => {}),
    );
    const stopped = life.stop();
    await clock.advance(1_001);
    expect(await stopped).toEqual({ left: ['hangs', 'fails'] });
    expect(seen).toEqual(['first']);
    expect(clock.timers).toBe(0);
  });

  test('a stop in the middle of a start waits for it, and stops it too', async () => {
    const { life } = make();
    const { open, opened } = gate();
    const seen: string[] = [];
    const starting = life.start(
      'slow',
      () => opened,
      () => seen.push('slow stopped'),
    );
    const stopped = life.stop();
    open();
    await starting;
    expect(await stopped).toEqual({ left: [] });
    expect(seen).toEqual(['slow stopped']);
  });
});

describe('runProcess', () => {
  const fakeProcess = () => {
    const listeners = new Map<string, (value: unknown) => void>();
    const codes: number[] = [];
    const exited = gate();
    const events: ProcessEvents = {
      on: (event, listener) => listeners.set(event, listener),
      exit(code) {
        codes.push(code);
        exited.open();
      },
    };
    return { events, codes, exited: exited.opened, emit: (event: string, value?: unknown) => listeners.get(event)!(value) };
  };
  const options = (events: ProcessEvents) => ({ log: silentLog, clock: manualClock(), stop_ms: 1_000, events });

  test('SIGTERM stops everything and exits with 0', async () => {
    const fake = fakeProcess();
    const seen: string[] = [];
    await runProcess(options(fake.events), async (life) => {
      await life.start(
        'a',
        () => 1,
        () => seen.push('a'),
      );
    });
    expect(fake.codes).toEqual([]);
    fake.emit('SIGTERM');
    await fake.exited;
    expect(seen).toEqual(['a']);
    expect(fake.codes).toEqual([0]);
  });

  test('a second signal does not wait', async () => {
    const fake = fakeProcess();
    await runProcess(options(fake.events), async (life) => {
      await life.start(
        'a',
        () => 1,
        () => new Promise(() => {}),
      );
    });
    fake.emit('SIGINT');
    fake.emit('SIGINT');
    expect(fake.codes).toEqual([130]);
  });

  test('a signal while starting: what stands is stopped, and the exit is clean', async () => {
    const fake = fakeProcess();
    const { open, opened } = gate();
    const seen: string[] = [];
    const running = runProcess(options(fake.events), async (life) => {
      await life.start(
        'slow',
        () => opened,
        () => seen.push('slow'),
      );
      await life.start('never', () => seen.push('never started'));
    });
    fake.emit('SIGTERM');
    open();
    await running;
    await fake.exited;
    expect(seen).toEqual(['slow']);
    expect(fake.codes).toEqual([0]);
  });

  test.each(['uncaughtException', 'unhandledRejection'])('%s exits with 1', async (event) => {
    const fake = fakeProcess();
    await runProcess(options(fake.events), async () => {});
    fake.emit(event, new Error('bug'));
    expect(fake.codes).toEqual([1]);
  });

  test('a failed start stops what was started and exits with 1', async () => {
    const fake = fakeProcess();
    const seen: string[] = [];
    await runProcess(options(fake.events), async (life) => {
      await life.start(
        'a',
        () => 1,
        () => seen.push('a'),
      );
      throw new Error('no');
    });
    expect(seen).toEqual(['a']);
    expect(fake.codes).toEqual([1]);
  });
});
