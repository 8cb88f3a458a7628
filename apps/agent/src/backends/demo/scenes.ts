import type { Turn } from '@iris/agent-link';
import { messageScenes } from './message-scenes.js';
import { pickerScenes } from './picker-scenes.js';
import { placeScenes } from './place-scenes.js';
import type { Scene } from './scene.js';
import type { Stage } from './stage.js';
import { workScenes } from './work-scenes.js';

const list: Scene = {
  name: 'list',
  description: 'this list',
  run: (turn) =>
    turn.write(
      `\`/demo\` alone takes you on the tour. One at a time:\n\n${scenes
        .map(({ name, args_hint, description }) => `- \`/demo ${name}${args_hint === undefined ? '' : ` ${args_hint}`}\`: ${description}`)
        .join('\n')}\n\nWithout the slash (\`demo long\`) it runs as this place's turn, and others wait for it.`,
    ),
};

/** Everything that can be shown, in the order of the tour. */
export const scenes: readonly Scene[] = [...messageScenes, ...workScenes, ...placeScenes, ...pickerScenes, list];
const byName = new Map(scenes.map((scene) => [scene.name, scene]));

/** `/demo <scene> <args>`, or the tour when nothing is named. */
export async function showScene(turn: Turn, args: string, stage: Stage): Promise<void> {
  const [, name = '', rest = ''] = /^(\S*)\s?([\s\S]*)$/.exec(args) ?? [];
  if (name === '') return tour(turn, stage);
  const scene = byName.get(name.toLowerCase());
  if (scene) return scene.run(turn, scene.name === 'echo' ? rest : rest.trim(), stage);
  turn.write(`I don't know the scene “${name}”. `);
  return list.run(turn, '', stage);
}

async function tour(turn: Turn, stage: Stage): Promise<void> {
  const stops = scenes.filter((scene) => scene.tour !== undefined);
  await stage.speak(turn, `A tour of ${stops.length} stops: everything that an agent can show you. Stop it when you have seen enough.`);
  turn.stop();
  for (const [i, scene] of stops.entries()) {
    if (turn.signal.aborted) return;
    turn.commentary(`${i + 1}/${stops.length} \`/demo ${scene.name}\`: ${scene.description}`);
    await scene.run(turn, scene.tour ?? '', stage);
    turn.stop();
    await stage.pause(turn, stage.pace_ms * 10);
  }
  await stage.speak(turn, 'That was the tour. A failing turn, a long one and more are left for you: `/demo list`.');
}
