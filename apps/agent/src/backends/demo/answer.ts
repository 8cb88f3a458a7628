import type { Turn } from '@iris/agent-link';
import { titleOf } from '../../title.js';
import type { DemoLane } from './lanes.js';
import { type Stage, words } from './stage.js';

const greeting = /^\s*(hi|hello|hey|hallo|moin|servus|hola|salut|bonjour|good (morning|evening|day))\b/i;

/** An ordinary answer: thinks, works with a tool or two, and streams markdown. The same message gets the same answer. */
export async function answer(turn: Turn, lane: DemoLane, stage: Stage): Promise<void> {
  const { text, media = [] } = turn.message;
  const count = words(text.trim()).length;
  lane.messages++;
  turn.meta({
    model: lane.model,
    tokens: 0,
    runtime: { model: lane.model.slice(lane.model.indexOf('/') + 1), context_pct: Math.min(100, lane.messages), cwd: '~', cost: 0 },
  });
  const added: string[] = [];
  turn.onSteer((more) => {
    added.push(more);
    return true;
  });

  await stage.think(
    turn,
    `They wrote ${count} ${count === 1 ? 'word' : 'words'}. I have no model to ask, so I look at the words themselves, and say so. `,
  );
  await lookAt(turn, text, count, stage);
  await stage.speak(turn, greeting.test(text) ? greet(lane) : text.includes('?') ? reply(text) : remark(text, media.length));
  // What was added while this streamed is answered too; only when nothing is left is the door closed.
  for (let more = added.shift(); more !== undefined && !turn.signal.aborted; more = added.shift()) {
    await stage.speak(turn, `\n\nAnd you added:\n\n${quote(more)}\n\nNoted, in the middle of my answer.`);
  }
  turn.onSteer(undefined);

  if (turn.channel?.auto) {
    const title = titleOf(text);
    if (title !== undefined && title !== turn.channel.name) turn.title(title);
  }
}

async function lookAt(turn: Turn, text: string, count: number, stage: Stage): Promise<void> {
  const looking = turn.tool('count_words', { preview: oneLine(text), args: { text: text.slice(0, 2_000) } });
  await stage.pause(turn, stage.pace_ms * 5);
  looking.progress('counting…');
  await stage.pause(turn, stage.pace_ms * 5);
  looking.end({ output_preview: `${count} words, ${[...text].length} characters` });
  if (!text.includes('?')) return;
  turn.commentary('That is a question. Let me see whether my script knows the answer.');
  const searching = turn.tool('search_script', { preview: oneLine(text), args: { query: text.slice(0, 200), limit: 3 } });
  await stage.pause(turn, stage.pace_ms * 10);
  searching.end({ ok: false, output_preview: 'no match: the script has 0 facts' });
}

const greet = (lane: DemoLane): string =>
  `Hello! 👋 I am the **demo agent**: scripted, and without a model, so that you can see the gateway work.

- Write anything, and I answer like this: thinking first, then a tool, then text that streams.
- \`/demo\` shows everything that can be shown; \`/demo list\` says what there is.
- \`/help\` lists my commands.

${lane.messages === 1 ? 'This is the first message I have seen here.' : `This is message number ${lane.messages} here.`}`;

const reply = (text: string): string =>
  `You asked:

${quote(text)}

I can't know: there is **no model** behind me, only a script. A real agent would answer here, over the same link and with the same frames:

1. \`agent.busy\`, so that you see that somebody is at work,
2. \`tool.start\` and \`tool.end\` for what it does,
3. \`message.start\`, many \`message.update\`, and one \`message.stop\`.

Attach one with [the agent SDK](../packages/agent-link/README.md), or try \`/demo\`.`;

const remark = (text: string, files: number): string =>
  `You wrote:

${quote(text)}

${files > 0 ? `With ${files === 1 ? 'a file' : `${files} files`}, which I have seen but not opened.\n\n` : ''}Here is what I make of it, as a table:

| what | value |
| --- | --- |
| words | ${words(text.trim()).length} |
| characters | ${[...text].length} |
| bytes on the wire | ${Buffer.byteLength(text)} |

And as code:

\`\`\`ts
const message = ${JSON.stringify(oneLine(text))};
\`\`\`

Type \`/demo\` to see what else I can do.`;

const quote = (text: string): string =>
  firstLines(text)
    .split('\n')
    .map((line) => `> ${line}`)
    .join('\n');
const firstLines = (text: string): string => (text.length > 2_000 ? `${text.slice(0, 2_000)}…` : text);
const oneLine = (text: string): string => {
  const line = text.trim().replace(/\s+/g, ' ');
  return [...line].length > 60 ? `${[...line].slice(0, 59).join('')}…` : line;
};
