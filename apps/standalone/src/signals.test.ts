import { manualClock } from '@iris/runtime/testing';
import { expect, test } from '@jest/globals';
import { calmSignals } from './signals.js';

test('a Ctrl-C that arrives twice at once is one; a second later it is another', async () => {
  const clock = manualClock();
  const listeners = new Map<string, (value: unknown) => void>();
  const events = calmSignals({ on: (event, listener) => listeners.set(event, listener), exit: () => {} }, clock);
  const heard: string[] = [];
  for (const signal of ['SIGINT', 'SIGTERM', 'uncaughtException']) events.on(signal, () => heard.push(signal));
  listeners.get('SIGINT')!(undefined);
  listeners.get('SIGINT')!(undefined);
  listeners.get('SIGTERM')!(undefined);
  expect(heard).toEqual(['SIGINT']);
  await clock.advance(1_000);
  listeners.get('SIGINT')!(undefined);
  await clock.advance(1_000);
  listeners.get('SIGHUP')!(undefined);
  listeners.get('uncaughtException')!(undefined);
  expect(heard).toEqual(['SIGINT', 'SIGINT', 'SIGTERM', 'uncaughtException']);
});
