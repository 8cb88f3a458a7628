import { lane, type Stage, stayAttached } from '@iris/testkit';
import { describe, expect, test } from '@jest/globals';
import { away, ledgerOf, onPushStage as push } from './push-stage.js';

const choices = [{ value: 'yes', label: 'Yes' }];

/** Every session instance that comes to this call dies of it; the first of them is who emits. Others take its place. */
function dieAt({ world }: Stage, at: (call: { to: string; name: string }) => boolean): () => boolean {
  let died = false;
  world.backbone.onCall = (call) => {
    const victim = world.sessions.find(({ name, alive }) => alive && name === call.from);
    if (died || victim === undefined || !at(call)) return;
    died = true;
    victim.kill();
  };
  return () => died;
}

/** What an agent says that is worth a push. */
const said: readonly (readonly [
  string,
  (stage: Stage, begin?: () => void) => Promise<void>,
  { class: string } & Record<string, string>,
])[] = [
  [
    'a whole answer',
    async ({ a, agent }, begin = () => {}) => {
      await a.send('go');
      const turn = await agent.turn();
      begin();
      turn.message('answer');
      turn.end();
    },
    { class: 'reply', body: 'answer' },
  ],
  [
    'a streamed answer',
    async ({ a, agent }, begin = () => {}) => {
      await a.send('go');
      const turn = await agent.turn();
      begin();
      turn.start();
      turn.update('ans');
      turn.stop({ final_text: 'answer' });
      turn.end();
    },
    { class: 'reply', body: 'answer' },
  ],
  [
    'a cron message',
    async ({ agent }, begin = () => {}) => {
      begin();
      agent.say('message', { message_id: 'c1', role: 'cron', text: 'morning' }, lane);
    },
    { class: 'cron', body: 'morning' },
  ],
  [
    'a question',
    async ({ agent }) => agent.say('picker.confirm', { picker_id: 'p1', title: 'Sure?', choices }, lane),
    { class: 'picker', title: 'Sure?' },
  ],
  [
    'a notification',
    async ({ agent }) => agent.say('notification', { kind: 'generic', title: 'Backup', body: 'done', ts: 1 }, lane),
    { class: 'notification', body: 'done' },
  ],
  [
    'a failed turn',
    async ({ a, agent }, begin = () => {}) => {
      await a.send('go');
      const turn = await agent.turn();
      begin();
      turn.end('failed', { error: 'no money' });
    },
    { class: 'failure', body: 'The agent could not finish: no money' },
  ],
];

/** Those that stand in the store as messages. */
const messages = said.filter(([, , wanted]) => wanted.class !== 'picker' && wanted.class !== 'notification');

/** Those that stand in the outbox alone. */
const others = said.filter((one) => !messages.includes(one));

describe('PSH2: that a frame is worth a push is not lost with whoever was to write it down', () => {
  test.each(said)('%s: the session dies between append and note; the agent says it again to the next', (_, speak, wanted) =>
    push(
      async (stage) => {
        const { world } = stage;
        await away(stage);
        stayAttached(stage);
        const died = dieAt(stage, ({ name }) => name === 'pushFrames.note');
        await speak(stage);
        await world.advance(90_000);
        expect(died()).toBe(true);
        expect(world.fakes.fcm.accepted.map(({ data }) => data)).toMatchObject([wanted]);
        expect((await ledgerOf(stage, 'tablet')).filter(({ state }) => state === 'sent')).toHaveLength(1);
      },
      { sessions: 2, unchecked: true, expected: ['*'] },
    ),
  );

  test.each(said)('%s: the store takes places and no notes for a while, and then the session dies', (_, speak, wanted) =>
    push(
      async (stage) => {
        const { world } = stage;
        await away(stage);
        stayAttached(stage);
        let refused = 0;
        world.backbone.onCall = ({ name }) => {
          if (name !== 'pushFrames.note' || refused < 0) return;
          refused++;
          throw new Error('not now');
        };
        await speak(stage);
        await world.advance(3_000);
        expect(refused).toBeGreaterThan(0);
        for (const session of world.sessions) session.kill();
        refused = -1;
        await world.startSession();
        await world.advance(90_000);
        expect(world.fakes.fcm.accepted.map(({ data }) => data)).toMatchObject([wanted]);
      },
      { sessions: 2, unchecked: true, expected: ['*'] },
    ),
  );

  test.each(messages.flatMap(([what, ...rest]) => (['append', 'pushFrames.note'] as const).map((at) => [what, at, ...rest] as const)))(
    '%s: the session dies at %s, and its agent never comes back: the upkeep appends it, and notes it',
    (_, at, speak, wanted) =>
      push(
        async (stage) => {
          const { world, agent } = stage;
          await away(stage);
          let died = () => false;
          await speak(stage, () => {
            died = dieAt(stage, at === 'append' ? appending() : ({ name }) => name === at);
          });
          await world.advance(1_000);
          expect(died()).toBe(true);
          agent.cut();
          await world.advance(90_000);
          expect(world.fakes.fcm.accepted.map(({ data }) => data)).toMatchObject([wanted]);
        },
        { sessions: 2, unchecked: true, expected: ['*'] },
      ),
  );

  test.each(others)(
    '%s: the session dies at the note, and its agent never comes back: a worker finds it in the outbox',
    (_, speak, wanted) =>
      push(
        async (stage) => {
          const { world, agent } = stage;
          await away(stage);
          const died = dieAt(stage, ({ name }) => name === 'pushFrames.note');
          await speak(stage);
          await world.advance(1_000);
          expect(died()).toBe(true);
          agent.cut();
          await world.advance(30_000);
          expect(world.fakes.fcm.accepted.map(({ data }) => data)).toMatchObject([wanted]);
          expect((await ledgerOf(stage, 'tablet')).filter(({ state }) => state === 'sent')).toHaveLength(1);
          // Once, however long it stands there.
          await world.advance(120_000);
          expect(world.fakes.fcm.accepted).toHaveLength(1);
          expect(await world.store.pushOwed.due(world.time.now(), 10)).toEqual([]);
        },
        { sessions: 2, unchecked: true, expected: ['*'] },
      ),
  );

  test.each(others)('%s: the worker that finds it dies before its note; the next one does it again', (_, speak, wanted) =>
    push(
      async (stage) => {
        const { world, agent } = stage;
        await away(stage);
        dieAt(stage, ({ name }) => name === 'pushFrames.note');
        await speak(stage);
        await world.advance(1_000);
        agent.cut();
        let died = 0;
        world.backbone.onCall = ({ from, name }) => {
          const victim = world.workers.find((one) => one.alive && one.name === from);
          if (victim === undefined || name !== 'pushFrames.note') return;
          died++;
          if (died === 1) victim.kill();
        };
        await world.advance(30_000);
        expect(died).toBe(1);
        await world.startWorker();
        await world.advance(60_000);
        expect(died).toBeGreaterThan(1);
        expect(world.fakes.fcm.accepted.map(({ data }) => data)).toMatchObject([wanted]);
      },
      { sessions: 2, unchecked: true, expected: ['*'] },
    ),
  );

  test.each(messages)('%s: the worker that repairs it dies between append and note; the next one does it again', (_, speak, wanted) =>
    push(
      async (stage) => {
        const { world, agent } = stage;
        await away(stage);
        await speak(stage, () => void dieAt(stage, appending()));
        await world.advance(1_000);
        agent.cut();
        let died = 0;
        world.backbone.onCall = ({ from, name }) => {
          const victim = world.workers.find((one) => one.alive && one.name === from);
          if (victim === undefined || name !== 'pushFrames.note') return;
          died++;
          if (died === 1) victim.kill();
        };
        await world.advance(30_000);
        expect(died).toBe(1);
        await world.startWorker();
        await world.advance(120_000);
        expect(died).toBeGreaterThan(1);
        expect(world.fakes.fcm.accepted.map(({ data }) => data)).toMatchObject([wanted]);
      },
      { sessions: 2, unchecked: true, expected: ['*'] },
    ),
  );
});

/** The append of the message that the store has and the outbox has not. */
const appending = () => {
  let stored = false;
  return ({ to, name }: { to: string; name: string }) => {
    if (name === 'messages.insert') stored = true;
    return stored && to === 'outbox' && name === 'append';
  };
};
