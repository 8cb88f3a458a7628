import { LinkError, type Turn } from '@iris/agent-link';
import { sampleImage } from './sample-image.js';
import type { Scene } from './scene.js';
import type { Stage } from './stage.js';

/** Milliseconds that the demo waits for an answer of the gateway before it says that none came. */
const patience_ms = 10_000;

/** Ask the gateway, and say in the answer what it says, also when it refuses. */
async function tell<T>(turn: Turn, stage: Stage, asked: Promise<T>, said: (answer: T) => string): Promise<void> {
  const timeout = new AbortController();
  const late = new Promise<never>((_, reject) => {
    const timer = stage.clock.after(patience_ms, () => reject(new LinkError('timeout', `no answer within ${patience_ms / 1_000} seconds`)));
    for (const signal of [turn.signal, timeout.signal]) signal.addEventListener('abort', () => timer.cancel());
  });
  try {
    const answer = await Promise.race([asked, late]);
    await stage.speak(turn, `${said(answer)}\n\n`);
  } catch (error) {
    if (!(error instanceof LinkError)) throw error;
    await stage.speak(turn, `The gateway refused: \`${error.code}\` (${error.message}).\n\n`);
  } finally {
    timeout.abort();
  }
}

/** Channels, threads, names, the past, and files. */
export const placeScenes: readonly Scene[] = [
  {
    name: 'channel',
    args_hint: '[name]',
    description: 'a new channel',
    tour: '',
    run: (turn, args, stage) =>
      tell(turn, stage, stage.agent().createChannel(args || 'Demo channel'), ({ name }) => `There is a new channel: **${name}**.`),
  },
  {
    name: 'thread',
    args_hint: '[name]',
    description: 'a new thread here',
    tour: '',
    run: (turn, args, stage) =>
      tell(turn, stage, turn.createThread(args || 'Demo thread'), ({ name }) => `There is a new thread: **${name}**.`),
  },
  {
    name: 'rename',
    args_hint: '[name]',
    description: 'names a new thread twice, or this place once',
    tour: '',
    async run(turn, args, stage) {
      if (args !== '') return tell(turn, stage, turn.rename(args), () => `This place is called **${args}** now.`);
      await tell(
        turn,
        stage,
        turn.createThread('A first name').then(async ({ chat_id, thread_id }) => {
          await stage.pause(turn, stage.pace_ms * 20);
          await stage
            .agent()
            .lane(chat_id, thread_id ?? null)
            .rename('A better name', { only_if_current: 'A first name' });
        }),
        () => 'A thread was called “A first name” and is called **A better name** now.',
      );
    },
  },
  {
    name: 'history',
    description: 'how much of this place the gateway remembers',
    tour: '',
    run: (turn, _, stage) =>
      tell(turn, stage, turn.history({ limit: 200 }), ({ messages, has_more }) => {
        const roles = new Map<string, number>();
        for (const { role } of messages) roles.set(role, (roles.get(role) ?? 0) + 1);
        return `The gateway remembers ${has_more ? 'more than ' : ''}${messages.length} messages here: ${[...roles].map(([role, n]) => `${n} ${role}`).join(', ') || 'none'}.`;
      }),
  },
  {
    name: 'search',
    args_hint: '<words>',
    description: 'looks for words in all places',
    tour: 'demo',
    run: (turn, args, stage) =>
      tell(turn, stage, stage.agent().search(args || 'demo'), ({ query, hits }) =>
        [`${hits.length} hits for “${query}”.`, ...hits.slice(0, 5).map((hit) => `> ${hit.snippet.replaceAll('\n', ' ')}`)].join('\n\n'),
      ),
  },
  {
    name: 'media',
    description: 'an image, offered and in a message',
    tour: '',
    run: (turn, _, stage) =>
      tell(
        turn,
        stage,
        turn.upload({ kind: 'image', mime: 'image/png', bytes: sampleImage(), filename: 'demo.png' }).then((image) => {
          turn.offer(image);
          turn.say('And here it is in a message.', { media: [image] });
        }),
        () => 'That was an image of 64 × 64 pixels.',
      ),
  },
];
