import { numbers, type Scene } from './scene.js';
import type { Stage } from './stage.js';

const reasons = ['processing', 'tool', 'waiting_input', 'cron'] as const;
const kinds = ['generic', 'cron', 'approval', 'clarify', 'channel_created', 'channel_renamed'] as const;

/** What shows that somebody is at work: tools, typing, busy, notifications, and what comes by itself. */
export const workScenes: readonly Scene[] = [
  {
    name: 'tools',
    description: 'three tools: one in steps, one that fails, one with a long output',
    tour: '',
    async run(turn, _, stage) {
      const tests = turn.tool('terminal', { preview: 'pytest -q', args: { command: 'pytest -q', timeout: 60 } });
      for (const share of [25, 50, 75]) {
        await stage.pause(turn, stage.pace_ms * 8);
        tests.progress(`${share} %`);
      }
      tests.end({ output_preview: '12 passed' });
      const page = turn.tool('web_fetch', { preview: 'https://example.org/missing', args: { url: 'https://example.org/missing' } });
      await stage.pause(turn, stage.pace_ms * 8);
      page.end({ ok: false, output_preview: 'HTTP 404' });
      const log = turn.tool('read_file', { preview: 'build.log', args: { path: 'build.log' } });
      await stage.pause(turn, stage.pace_ms * 4);
      log.end({ output_preview: Array.from({ length: 200 }, (_, i) => `line ${i + 1}`).join('\n') });
    },
  },
  {
    name: 'typing',
    description: 'typing, and no longer typing',
    tour: '',
    async run(turn, _, stage) {
      turn.typing(true);
      await stage.pause(turn, stage.pace_ms * 40);
      turn.typing(false);
    },
  },
  {
    name: 'busy',
    description: `every reason to be busy: ${reasons.join(', ')}`,
    tour: '',
    async run(turn, _, stage) {
      for (const reason of [...reasons.slice(1), reasons[0]]) {
        turn.busy(reason);
        await stage.pause(turn, stage.pace_ms * 20);
      }
    },
  },
  {
    name: 'notify',
    args_hint: '[kind]',
    description: `a notification of each kind, or of one: ${kinds.join(', ')}`,
    tour: '',
    async run(turn, args, stage) {
      for (const kind of kinds.filter((one) => args === '' || one === args)) {
        turn.notify({ kind, title: `Demo: ${kind}`, body: `This is what a notification of the kind “${kind}” looks like.` });
        await stage.pause(turn, stage.pace_ms * 10);
      }
    },
  },
  {
    name: 'cron',
    args_hint: '[seconds]',
    description: 'a message that comes by itself, after the turn',
    tour: '2',
    run(turn, args, stage) {
      const [seconds = 2] = numbers(args, { or: 2, max: 3_600 });
      stage.later(seconds * 1_000, () => cron(turn, stage));
      turn.say(`In ${seconds} seconds a message will come by itself.`);
    },
  },
  {
    name: 'steer',
    args_hint: '[seconds]',
    description: 'waits 15 seconds for what you write meanwhile, and uses it',
    tour: '3',
    async run(turn, args, stage) {
      const [seconds = 15] = numbers(args, { or: 15, max: 600 });
      const heard: string[] = [];
      turn.onSteer((text) => {
        heard.push(text);
        return true;
      });
      turn.write(`I listen for ${seconds} seconds. Write something!\n\n`);
      await stage.pause(turn, seconds * 1_000);
      turn.onSteer(undefined);
      await stage.speak(turn, heard.length === 0 ? 'Nothing came.' : `I heard:\n\n${heard.map((text) => `> ${text}`).join('\n>\n')}`);
      turn.stop();
    },
  },
];

/** The id names the occurrence: a cron that fires twice says it once. */
function cron({ turn_id, chat_id, thread_id }: { turn_id: string; chat_id: string; thread_id: string | null }, stage: Stage): void {
  const lane = stage.agent().lane(chat_id, thread_id);
  lane.say('Good day! Nobody asked for this message; a schedule did.', { role: 'cron', message_id: `cron:${turn_id}` });
  lane.notify({ kind: 'cron', title: 'Demo', body: 'A scheduled message has come.' });
}
