import type { Answer, Turn } from '@iris/agent-link';
import { numbers, type Scene } from './scene.js';
import type { Stage } from './stage.js';

type Ask = (turn: Turn, timeout_ms: number) => Promise<Answer<unknown>>;

/** A question that is asked, waited for and reported. */
const question = (name: string, description: string, ask: Ask): Scene => ({
  name,
  args_hint: '[seconds]',
  description,
  tour: '15',
  async run(turn, args, stage) {
    const [seconds = 30] = numbers(args, { or: 30, min: 1, max: 86_400 });
    const { value, reason } = await ask(turn, seconds * 1_000);
    await stage.speak(turn, value === null ? `Nobody answered (${reason}).\n\n` : `You chose: \`${JSON.stringify(value)}\`\n\n`);
  },
});

const pickers: readonly Scene[] = [
  question('choice', 'a choice between three', (turn, timeout_ms) =>
    turn.ask.choice({
      title: 'Reasoning effort',
      body: 'How hard shall I think?',
      choices: [
        { value: 'low', label: 'Low' },
        { value: 'medium', label: 'Medium', is_current: true },
        { value: 'high', label: 'High' },
      ],
      timeout_ms,
    }),
  ),
  question('approval', 'a command to be approved', (turn, timeout_ms) =>
    turn.ask.approval({ title: 'Run this command?', body: 'It removes the build folder.', command: 'rm -rf build/', timeout_ms }),
  ),
  question('clarify', 'a question that any text answers', (turn, timeout_ms) =>
    turn.ask.clarify({
      title: 'One thing is unclear',
      question: 'Which environment do you mean?',
      choices: [
        { value: 'staging', label: 'Staging' },
        { value: 'production', label: 'Production' },
      ],
      allow_text: true,
      timeout_ms,
    }),
  ),
  question('multi', 'a question with several answers at once', (turn, timeout_ms) =>
    turn.ask.clarify({
      question: 'Which tests shall run?',
      choices: ['unit', 'contract', 'flow', 'system'].map((value) => ({ value, label: value })),
      multi: true,
      timeout_ms,
    }),
  ),
  question('confirm', 'yes or no', (turn, timeout_ms) =>
    turn.ask.confirm({ title: 'Deploy now?', body: 'All checks are green.', yes: 'Deploy', no: 'Not yet', timeout_ms }),
  ),
  question('model', 'a model of one of two providers', (turn, timeout_ms) =>
    turn.ask.model({ ...modelQuestion('demo/scripted'), timeout_ms }),
  ),
];

/** The models that the demo pretends to have. */
export function modelQuestion(current: string) {
  const at = current.indexOf('/');
  return {
    title: 'Model',
    current_provider: current.slice(0, at),
    current_model: current.slice(at + 1),
    providers: [
      {
        id: 'demo',
        label: 'Demo',
        models: [
          { id: 'scripted', label: 'Scripted' },
          { id: 'scripted-large', label: 'Scripted, but larger' },
        ],
      },
      { id: 'local', label: 'Local', models: [{ id: 'qwen3-27b', label: 'Qwen3 27B' }] },
    ],
  };
}

export const pickerScenes: readonly Scene[] = [
  ...pickers,
  {
    name: 'withdraw',
    description: 'a question that is taken back after 3 seconds',
    tour: '',
    async run(turn, _, stage) {
      const patience = new AbortController();
      const asked = turn.ask.confirm({ title: 'Quick: yes or no?', body: 'This question goes away by itself.', signal: patience.signal });
      await stage.pause(turn, 3_000);
      patience.abort();
      const { value } = await asked;
      await stage.speak(turn, value === null ? 'Too late, I took it back.\n\n' : `That was quick: ${value ? 'yes' : 'no'}.\n\n`);
    },
  },
  {
    name: 'pickers',
    args_hint: '[seconds]',
    description: 'all kinds of questions, one after the other',
    async run(turn: Turn, args: string, stage: Stage) {
      for (const picker of pickers) if (!turn.signal.aborted) await picker.run(turn, args, stage);
    },
  },
];
