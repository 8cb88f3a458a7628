import type { Command, Turn } from '@iris/agent-link';
import type { Clock } from '@iris/runtime';
import type { Backend } from '../../backend.js';
import { answer } from './answer.js';
import { demoLanes } from './lanes.js';
import { modelQuestion } from './picker-scenes.js';
import { showScene } from './scenes.js';
import { createStage } from './stage.js';

const version = '1.0.0';

/** A scripted agent: needs no model, answers the same message alike, and shows on request whatever an agent can show. */
export function demoBackend(options: { clock: Clock; pace_ms: number }): Backend {
  const { clock } = options;
  const stage = createStage(options);
  const lanes = demoLanes(() => clock.now());
  const began_at = clock.now();

  const commands: Command[] = [
    { name: '/help', description: 'What I can do', category: 'Info', aliases: ['/start'], run: (turn) => turn.write(help(commands)) },
    {
      name: '/new',
      description: 'Start a new session',
      args_hint: '[name]',
      category: 'Session',
      aliases: ['/reset'],
      run(turn) {
        const lane = lanes.of(turn);
        lane.messages = 0;
        lane.began_at = clock.now();
        lane.session = turn.command?.args || undefined;
        turn.say(`✨ A new session${lane.session === undefined ? '' : `: ${lane.session}`}. I have forgotten what was before.`);
      },
    },
    { name: '/status', description: 'How this session is going', category: 'Info', run: (turn) => turn.write(status(turn)) },
    {
      name: '/model',
      description: 'Switch the model (there is none, but it can be switched)',
      args_hint: '[provider/model]',
      category: 'Configuration',
      async run(turn) {
        const lane = lanes.of(turn);
        const named = turn.command?.args;
        if (named) {
          lane.model = named.includes('/') ? named : `demo/${named}`;
        } else {
          const { value } = await turn.ask.model({ ...modelQuestion(lane.model), timeout_ms: 120_000 });
          if (value === null) return void turn.say('The model stays as it is.');
          lane.model = `${value.provider}/${value.model}`;
        }
        turn.say(`From now on I pretend to be \`${lane.model}\`.`);
      },
    },
    {
      name: '/title',
      description: 'Name this place',
      args_hint: '<name>',
      category: 'Session',
      async run(turn) {
        const name = turn.command?.args;
        if (!name) return void turn.say('How shall it be called? `/title <name>`');
        await turn.rename(name);
      },
    },
    {
      name: '/demo',
      description: 'Show everything an agent can show, or one thing (`/demo list`)',
      args_hint: '[scene]',
      category: 'Demo',
      run: (turn) => showScene(turn, demoArgs(turn.message.text), stage),
    },
  ];

  const status = (turn: Turn): string => {
    const { messages, model, began_at: since, session } = lanes.of(turn);
    return `| | |
| --- | --- |
| agent | demo ${version} |
| model | ${model} |
| session | ${session ?? 'unnamed'}, for ${duration(clock.now() - since)} |
| messages | ${messages} |
| running for | ${duration(clock.now() - began_at)} |
| link | ${stage.agent().online ? 'up' : 'down'} |`;
  };

  return {
    name: 'demo',
    version,
    commands,
    attached: (agent) => stage.attach(agent),
    close: () => stage.close(),
    onTurn(turn) {
      // `demo long` without the slash: the same scene, as the lane's one turn.
      if (/^\s*\/?demo(\s|$)/i.test(turn.message.text)) return showScene(turn, demoArgs(turn.message.text), stage);
      return answer(turn, lanes.of(turn), stage);
    },
  };
}

/** What follows the first word, exactly, but for one blank. */
const demoArgs = (text: string): string => text.replace(/^\s*\S+\s?/, '');

const help = (commands: readonly Command[]): string =>
  `I am the demo agent: scripted, without a model. Write anything, or one of these:\n\n${commands
    .map(({ name, args_hint, description }) => `- \`${name}${args_hint === undefined ? '' : ` ${args_hint}`}\`: ${description}`)
    .join('\n')}`;

function duration(ms: number): string {
  const seconds = Math.floor(ms / 1_000);
  if (seconds < 120) return `${seconds} s`;
  return seconds < 7_200 ? `${Math.floor(seconds / 60)} min` : `${Math.floor(seconds / 3_600)} h`;
}
