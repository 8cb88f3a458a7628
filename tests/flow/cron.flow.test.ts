import { onStage } from '@iris/testkit';
import { expect, test } from '@jest/globals';

/** An occurrence is named by the job and its wall time, in whichever zone the tenant is by then. */
const occurrence = (job: string, wall_time: string) => ({
  message_id: `cron:${job}:${wall_time}`,
  role: 'cron',
  text: `${job} at ${wall_time}`,
});

test('C140 LNK25 LNK26 LNK28: one occurrence of a scheduled job is one message, however often and by whichever process it is said', () =>
  onStage(async ({ world, agent, a, b }) => {
    const morning = occurrence('weather', '2026-11-30T07:00');
    // The zone moves from +10 to +2 with the job pending: the scheduler takes it for due at once, and again at the wall time.
    agent.say('message', morning);
    await world.advance(60_000);
    agent.say('message', morning);
    await world.advance(1_000);
    // The process that would have said it is restarted, knows nothing of it, and finds it due.
    agent.cut();
    agent.restart();
    await agent.connect();
    agent.say('message', morning);
    await world.advance(1_000);
    // The next day is another occurrence, with a message of its own.
    agent.say('message', occurrence('weather', '2026-12-01T07:00'));
    await world.advance(1_000);
    for (const device of [a, b])
      expect(device.frames((frame) => frame.payload.role === 'cron').map(({ payload }) => payload.text)).toEqual([
        morning.text,
        'weather at 2026-12-01T07:00',
      ]);
    const { messages = [] } = (await b.history({ chat_id: 'android:default' })).payload;
    expect(messages.filter(({ role }) => role === 'cron')).toHaveLength(2);
  }));
