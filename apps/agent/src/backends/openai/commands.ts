import type { Command, Turn } from '@iris/agent-link';
import type { Clock } from '@iris/runtime';
import type { Endpoint } from './endpoint.js';
import type { LaneSettings } from './lane-settings.js';
import { byProvider, type ModelList, meant, shortName } from './model-list.js';
import type { ModelConfig, Question } from './options.js';
import type { PastMessage } from './past.js';

export interface CommandParts {
  readonly endpoint: Endpoint;
  readonly models: ModelList;
  readonly settings: LaneSettings;
  readonly config: ModelConfig;
  readonly clock: Clock;
  modelOf(turn: Turn): Promise<string>;
  past(turn: Turn): Promise<PastMessage[]>;
  isRunning(turn: Turn): boolean;
  answer(turn: Turn, question: Question, before: readonly PastMessage[]): Promise<void>;
}

/** Milliseconds a picker waits for someone. */
const patience_ms = 120_000;
const efforts = ['minimal', 'low', 'medium', 'high'] as const;
/** The endpoint's own default. */
const unset = 'default';

/** What the runner does by itself. Its words are the system's, so that the model never takes them for its own. */
export function commandsOf(parts: CommandParts): readonly Command[] {
  const { endpoint, models, settings, config } = parts;
  const tell = (turn: Turn, text: string) => void turn.say(text, { role: 'system' });

  const commands: Command[] = [
    { name: '/help', description: 'What can be asked of this agent', category: 'Info', run: (turn) => tell(turn, help(commands)) },
    {
      name: '/new',
      description: 'Begin anew: the model no longer knows what was before',
      category: 'Session',
      aliases: ['/reset'],
      // The command itself, as part of the lane's past, is where the next question's past begins.
      run: (turn) => tell(turn, '✨ A new beginning. What was said before is no longer told to the model.'),
    },
    {
      name: '/stop',
      description: 'Stop the answer that is being written',
      category: 'Session',
      // The gateway stops a running turn by itself.
      run: (turn) => tell(turn, 'Nothing is running here.'),
    },
    {
      name: '/model',
      description: 'Choose the model of this conversation',
      args_hint: '[model]',
      category: 'Configuration',
      run: (turn) => chooseModel(turn),
    },
    {
      name: '/reasoning',
      description: 'Choose how hard the model thinks',
      args_hint: `[${[unset, ...efforts].join('|')}]`,
      category: 'Configuration',
      run: (turn) => chooseReasoning(turn),
    },
    {
      name: '/retry',
      description: 'Answer the last message once more',
      category: 'Session',
      async run(turn) {
        const last = await lastExchange(turn);
        if (last === undefined) return;
        if (last.answers.length > 0) turn.delete(last.answers.map(({ message_id }) => message_id));
        await parts.answer(turn, last.question, last.before);
      },
    },
    {
      name: '/undo',
      description: 'Take the last message and its answer back',
      category: 'Session',
      async run(turn) {
        const last = await lastExchange(turn);
        if (last === undefined) return;
        turn.delete([last.question, ...last.answers].map(({ message_id }) => message_id));
        tell(turn, 'The last message and its answer are taken back.');
      },
    },
    {
      name: '/title',
      description: 'Name this conversation',
      args_hint: '<name>',
      category: 'Session',
      async run(turn) {
        const name = turn.command?.args;
        if (!name) return tell(turn, 'How shall it be called? `/title <name>`');
        await turn.rename(name);
      },
    },
    { name: '/status', description: 'Which model answers here, and what it is told', category: 'Info', run: (turn) => status(turn) },
  ];

  async function lastExchange(turn: Turn) {
    if (parts.isRunning(turn)) return tell(turn, 'An answer is being written. `/stop` it first.') as undefined;
    const past = await parts.past(turn);
    const at = past.findLastIndex(({ role }) => role === 'user');
    const question = past[at];
    if (question === undefined) return tell(turn, 'There is no message before this one.') as undefined;
    return { question, answers: past.slice(at + 1), before: past.slice(0, at) };
  }

  async function chooseModel(turn: Turn): Promise<void> {
    const named = turn.command?.args;
    if (named) {
      // Not every endpoint has a list: then the word is taken as it is.
      const list = await models.get(turn.signal, true).catch(() => []);
      const one = list.length === 0 ? named : meant(list, named);
      if (one === undefined) return tell(turn, `${endpoint.host} has no model like \`${named}\`.`);
      if (typeof one !== 'string')
        return tell(
          turn,
          `Which one? ${one
            .slice(0, 10)
            .map((id) => `\`${id}\``)
            .join(', ')}`,
        );
      return useModel(turn, one);
    }
    const list = await models.get(turn.signal, true);
    if (list.length === 0) return tell(turn, `${endpoint.host} has no models.`);
    const current = settings.of(turn).model ?? config.model ?? list[0]!.id;
    const at = current.indexOf('/');
    const { value } = await turn.ask.model({
      title: 'Model',
      providers: byProvider(list, endpoint.host),
      current_provider: at > 0 ? current.slice(0, at) : endpoint.host,
      current_model: at > 0 ? current.slice(at + 1) : current,
      timeout_ms: patience_ms,
    });
    if (turn.signal.aborted) return;
    if (value === null) return tell(turn, 'The model stays as it is.');
    useModel(turn, value.provider === endpoint.host ? value.model : `${value.provider}/${value.model}`);
  }

  function useModel(turn: Turn, model: string): void {
    settings.set(turn, { model });
    tell(turn, `From now on \`${shortName(model)}\` answers here.`);
  }

  async function chooseReasoning(turn: Turn): Promise<void> {
    const current = settings.of(turn).reasoning ?? unset;
    let value: string | null | undefined = turn.command?.args.toLowerCase() || undefined;
    if (value === undefined) {
      const choices = [unset, ...efforts].map((one) => ({
        value: one,
        label: one[0]!.toUpperCase() + one.slice(1),
        ...(one === current ? { is_current: true } : {}),
      }));
      ({ value } = await turn.ask.choice({
        title: 'Reasoning',
        body: 'How hard shall the model think?',
        choices,
        timeout_ms: patience_ms,
      }));
      if (turn.signal.aborted) return;
      if (value === null) return tell(turn, 'Reasoning stays as it is.');
    }
    if (value !== unset && !efforts.some((one) => one === value)) return tell(turn, `One of ${[unset, ...efforts].join(', ')}, please.`);
    settings.set(turn, { reasoning: value === unset ? undefined : value });
    tell(turn, value === unset ? 'How hard the model thinks is its own choice now.' : `The model thinks with ${value} effort from now on.`);
  }

  async function status(turn: Turn): Promise<void> {
    const past = await parts.past(turn);
    const model = await parts.modelOf(turn).catch(() => undefined);
    const context = config.context_tokens ?? (model === undefined ? undefined : models.contextOf(model));
    const rows: readonly (readonly [string, string])[] = [
      ['endpoint', endpoint.host],
      ['model', model === undefined ? 'unknown' : `\`${model}\``],
      ['reasoning', settings.of(turn).reasoning ?? unset],
      ['context', context === undefined ? 'unknown' : `${context} tokens`],
      [
        'remembered',
        `${past.length} messages, ${past.reduce((sum, { text }) => sum + text.length, 0)} of ${config.history_chars} characters`,
      ],
    ];
    tell(turn, `| | |\n| --- | --- |\n${rows.map(([name, value]) => `| ${name} | ${value} |`).join('\n')}`);
  }

  return commands;
}

const help = (commands: readonly Command[]): string =>
  `Write anything, and the model answers. Or one of these:\n\n${commands
    .map(({ name, args_hint, description }) => `- \`${name}${args_hint === undefined ? '' : ` ${args_hint}`}\`: ${description}`)
    .join('\n')}`;
