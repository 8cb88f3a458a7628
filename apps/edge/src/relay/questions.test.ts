import type { Ask } from '@iris/agent-link';
import { expect, test } from '@jest/globals';
import { askedIn } from './questions.js';

const approval = `⚠️ **Dangerous command requires approval:**
\`\`\`
rm -rf build
\`\`\`
Reason: recursive delete

Reply \`/approve\` to execute this one operation, \`/approve session\` to approve this pattern for the session, or \`/deny\` to cancel.`;

/** Remembers what was asked, and answers with `value`. */
function asking(value: string | null) {
  const asked: { kind: string; question: object }[] = [];
  const answer = (kind: string) => (question: object) => {
    asked.push({ kind, question });
    return Promise.resolve({ value, reason: 'answered' });
  };
  return { asked, ask: { approval: answer('approval'), clarify: answer('clarify') } as unknown as Ask };
}
const signal = new AbortController().signal;

test('an approval in words becomes a picker with what the words offer; its answer is the command', async () => {
  const { asked, ask } = asking('session');
  expect(await askedIn(approval)?.ask(ask, 1_000, signal)).toBe('/approve session');
  expect(asked).toMatchObject([
    {
      kind: 'approval',
      question: {
        command: 'rm -rf build',
        body: 'recursive delete',
        choices: [{ value: 'once' }, { value: 'session' }, { value: 'deny' }],
      },
    },
  ]);
  expect(await askedIn(approval)?.ask(asking(null).ask, 1_000, signal)).toBeNull();
});

test('a question with a numbered list, and one without', async () => {
  const { asked, ask } = asking('blue');
  expect(
    await askedIn('❓ Which colour?\n\n  1. red\n  2. blue\n\nReply with the number, the option text, or your own answer.')?.ask(
      ask,
      1,
      signal,
    ),
  ).toBe('blue');
  await askedIn('❓ And why?')?.ask(ask, 1, signal);
  expect(asked).toMatchObject([
    { kind: 'clarify', question: { question: 'Which colour?', choices: [{ value: 'red' }, { value: 'blue' }], allow_text: true } },
    { kind: 'clarify', question: { question: 'And why?', allow_text: true } },
  ]);
  expect(asked[1]!.question).not.toHaveProperty('choices');
});

test.each(['Done.', 'Say /approve when you like it', 'What now? ❓', ''])('no question: %s', (text) => {
  expect(askedIn(text)).toBeUndefined();
});
