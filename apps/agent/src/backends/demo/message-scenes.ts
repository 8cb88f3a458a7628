import { numbers, type Scene } from './scene.js';

const markdown = `# A heading

Text with **bold**, *italic*, ~~struck~~ and \`code\`, a [link](https://example.org), and an emoji family: 👨‍👩‍👧‍👦.

- a list
  - with a list in it
- [ ] a task, [x] a done one

> A quotation, العربية, עברית, 日本語, हिन्दी.

\`\`\`python
def fib(n: int) -> int:
    return n if n < 2 else fib(n - 1) + fib(n - 2)
\`\`\`

| left | right |
| :-- | --: |
| 1 | 2 |

---

The end.`;

/** Messages: whole, streamed, replaced, deleted, long, slow and at once. */
export const messageScenes: readonly Scene[] = [
  {
    name: 'echo',
    args_hint: '<text>',
    description: 'answers exactly the text, at once',
    run: (turn, args) => turn.write(args),
  },
  {
    name: 'fast',
    args_hint: '[text]',
    description: 'a turn that takes no time: one whole message',
    tour: '',
    run: (turn, args) => void turn.say(args || 'Done before you blinked.'),
  },
  {
    name: 'stream',
    description: 'reasoning, then markdown, word by word',
    tour: '',
    async run(turn, _, stage) {
      await stage.think(turn, 'First the thinking: it stands above the text, and folds away. ');
      await stage.speak(turn, markdown);
      turn.stop();
    },
  },
  {
    name: 'long',
    args_hint: '[sentences] [ms]',
    description: 'a long stream: 300 sentences, 20 ms each',
    async run(turn, args, stage) {
      const [sentences = 300, ms = 20] = numbers(args, { or: 300, min: 1, max: 20_000 }, { or: 20, max: 10_000 });
      for (let i = 1; i <= sentences && !turn.signal.aborted; i++) {
        turn.write(`This is sentence ${i} of ${sentences}. `);
        if (ms > 0) await stage.pause(turn, ms);
      }
    },
  },
  {
    name: 'slow',
    args_hint: '[seconds]',
    description: 'nothing at all for 10 seconds, then an answer',
    async run(turn, args, stage) {
      const [seconds = 10] = numbers(args, { or: 10, max: 3_600 });
      await stage.pause(turn, seconds * 1_000);
      turn.write(`That took ${seconds} seconds.`);
    },
  },
  {
    name: 'flood',
    args_hint: '[frames] [bytes]',
    description: 'many durable frames as fast as they go: 100 of 2,000 bytes',
    async run(turn, args, stage) {
      const [frames = 100, bytes = 2_000] = numbers(args, { or: 100, min: 1, max: 20_000 }, { or: 2_000, min: 1, max: 60_000 });
      for (let i = 1; i <= frames && !turn.signal.aborted; i++) {
        const head = `${i}/${frames} `;
        turn.commentary(head + '·'.repeat(Math.max(0, Math.floor((bytes - head.length) / 2))));
        if (i % 100 === 0) await new Promise<void>((resolve) => stage.clock.soon(resolve));
        // As fast as the gateway takes them, not faster.
        while (stage.agent().unacked > 2_000 && !turn.signal.aborted) await stage.pause(turn, 20);
      }
    },
  },
  {
    name: 'update',
    description: 'a message whose whole text is replaced while it runs',
    tour: '',
    async run(turn, _, stage) {
      const progress = turn.stream();
      for (let done = 0; done <= 10 && !turn.signal.aborted; done++) {
        progress.replace(`\`[${'█'.repeat(done)}${'░'.repeat(10 - done)}]\` ${done * 10} %`);
        await stage.pause(turn, stage.pace_ms * 5);
      }
      progress.stop();
    },
  },
  {
    name: 'commentary',
    description: 'beats between tools',
    tour: '',
    async run(turn, _, stage) {
      turn.commentary('Let me look at the tests first.');
      await stage.pause(turn, stage.pace_ms * 10);
      turn.commentary('Two of them fail. I know why.');
    },
  },
  {
    name: 'system',
    description: 'a message of the system',
    tour: '',
    run: (turn) => void turn.say('A word from the system: all is well.', { role: 'system' }),
  },
  {
    name: 'delete',
    description: 'a message that is deleted after a moment',
    tour: '',
    async run(turn, _, stage) {
      const message_id = turn.say('This message will be gone in a moment.');
      await stage.pause(turn, stage.pace_ms * 30);
      turn.delete([message_id]);
    },
  },
  {
    name: 'fail',
    args_hint: '[reason]',
    description: 'a turn that fails after half a sentence',
    async run(turn, args, stage) {
      await stage.speak(turn, 'This sentence will not be');
      throw new Error(args || 'the demo was asked to fail');
    },
  },
];
