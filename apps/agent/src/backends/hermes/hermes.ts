import { createHash } from 'node:crypto';
import type { Agent, Command, Turn } from '@iris/agent-link';
import type { Backend } from '../../backend.js';
import { titleOf } from '../../title.js';
import { attachments } from '../openai/attachments.js';
import { commandsOf } from '../openai/commands.js';
import { endpoint } from '../openai/endpoint.js';
import { type LanePlace, laneKey, laneSettings } from '../openai/lane-settings.js';
import { modelList, shortName } from '../openai/model-list.js';
import { asUser, openaiBackend } from '../openai/openai.js';
import type { ModelBackendOptions, Question } from '../openai/options.js';
import { conversation, type PastMessage, pastLimits, readPast } from '../openai/past.js';
import { runningLanes } from '../openai/running-lanes.js';
import type { Capabilities } from './capabilities.js';
import { perform } from './perform.js';
import { runs } from './runs.js';

const version = '1.0.0';
const patience_ms = 120_000;

/**
 * A Hermes by its Runs API, when it says that it has one; else the same as any endpoint. Where it can, Hermes remembers the conversation
 * itself, tools and all; once people took something back, it is told what is left instead.
 */
export function hermesBackend(options: ModelBackendOptions): Backend {
  const { clock, log, config, key } = options;
  const base = baseOf(options.url);
  const shared = { ...options, url: base };
  const retries = { retries: config.retries, silence_ms: config.silence_ms };
  const hermes = runs({ ...shared, ...retries, base });
  const asked = endpoint({ ...shared, ...retries });
  const models = modelList(asked, clock);
  const settings = laneSettings({ log, ...(options.dir === undefined ? {} : { dir: options.dir }) });
  const plain = openaiBackend(shared);
  const running = runningLanes();
  let attached: Agent | undefined;
  let known: { readonly can: Capabilities | undefined } | undefined;

  /** Asked once; again only when there was no answer. */
  const capabilities = async (signal: AbortSignal): Promise<Capabilities | undefined> => {
    if (known === undefined) {
      known = { can: await hermes.capabilities(signal) };
      log.info('agent.hermes', { host: hermes.host, runs: known.can !== undefined, ...known.can });
      if (known.can === undefined && plain.commands) attached?.setCommands(plain.commands);
    }
    return known.can;
  };

  const laneHash = (lane: LanePlace) => createHash('sha256').update(laneKey(lane)).digest('hex').slice(0, 24);
  const sessionOf = (lane: LanePlace) => `iris-${laneHash(lane)}-${settings.of(lane).session ?? '1'}`;
  /** From here on Hermes knows nothing but what it is told. */
  const startOver = (lane: LanePlace, session: string, memory: 'gateway' | undefined) => {
    const old = sessionOf(lane);
    settings.set(lane, { session: plainWord(session), memory });
    // A session that is at work is left alone.
    if (known?.can?.sessions && !running.has(lane)) hermes.forgetSession(old).catch((error) => log.debug('agent.session_kept', { error }));
  };
  const past = (turn: Turn) =>
    readPast(
      turn,
      pastLimits(config.history_chars, () => commands),
    );

  async function answer(turn: Turn, can: Capabilities, question: Question, before?: readonly PastMessage[]): Promise<void> {
    const { model, provider } = settings.of(turn);
    const named = model ?? config.model ?? can.model;
    if (named !== undefined) turn.meta({ model: shortName(named), runtime: { model: shortName(named) } });
    const attachedFiles = await attachments(question.media ?? [], {
      signal: turn.signal,
      log,
      http: (url, signal) => options.media(url, signal),
    });
    for (const note of attachedFiles.notes) turn.say(note, { role: 'system' });
    const { content } = asUser(question.text, attachedFiles.parts);

    /** Taken while the run goes on; what it did not hear is the next run's. */
    const unheard: string[] = [];
    const steering: Promise<void>[] = [];
    const told = before !== undefined || !can.idempotent || settings.of(turn).memory === 'gateway';
    const history = told ? conversation(before ?? (await past(turn))) : [];
    let input: string | readonly object[] = typeof content === 'string' ? content : [{ role: 'user', content }];
    for (let round = 1; ; round++) {
      const run_id = await hermes.begin(
        {
          input,
          // Told of no past, it would remember one of its own.
          session_id: told && history.length === 0 ? `iris-${laneHash(turn)}-${plainWord(turn.turn_id)}` : sessionOf(turn),
          ...(config.system_prompt === undefined ? {} : { instructions: config.system_prompt }),
          ...(history.length === 0 ? {} : { conversation_history: history }),
          ...((model ?? config.model) === undefined ? {} : { model: model ?? config.model! }),
          ...(provider === undefined ? {} : { provider }),
        },
        { run: round === 1 ? turn.turn_id : `${turn.turn_id}.${round}`, session: `iris-${laneHash(turn)}`, repeatable: can.idempotent },
        turn.signal,
      );
      const stop = () => void hermes.stop(run_id).catch((error) => log.warn('agent.stop_unheard', { run_id, error }));
      if (turn.signal.aborted) return stop();
      turn.signal.addEventListener('abort', stop, { once: true });
      if (can.steer)
        turn.onSteer((text) => {
          steering.push(hermes.steer(run_id, text).catch(() => void unheard.push(text)));
          return true;
        });
      try {
        const { text, pending } = await perform(turn, run_id, { runs: hermes, key, log });
        if (told)
          history.push({ role: 'user', content: typeof input === 'string' ? input : question.text }, { role: 'assistant', content: text });
        turn.onSteer(undefined);
        await Promise.all(steering.splice(0));
        if (pending !== undefined) unheard.unshift(pending);
      } finally {
        turn.onSteer(undefined);
        turn.signal.removeEventListener('abort', stop);
      }
      if (unheard.length === 0 || turn.signal.aborted) break;
      input = unheard.splice(0).join('\n\n');
    }
    if (turn.channel?.auto && !turn.signal.aborted) {
      const title = titleOf(question.text);
      if (title !== undefined && title !== turn.channel.name) turn.title(title);
    }
  }

  const chooseModel = async (turn: Turn, can: Capabilities): Promise<void> => {
    const tell = (text: string) => void turn.say(text, { role: 'system' });
    const use = (provider: string | undefined, model: string) => {
      settings.set(turn, { model, provider });
      tell(`From now on \`${shortName(model)}\` answers here.`);
    };
    const providers = can.model_options ? await hermes.modelOptions(turn.signal) : [];
    const words = turn.command?.args;
    if (words) {
      const found = providers.find(({ id, models: list }) => list.some((one) => words === one.id || words === `${id}/${one.id}`));
      return use(found?.id, found === undefined ? words : (found.models.find(({ id }) => words.endsWith(id))?.id ?? words));
    }
    if (providers.length === 0) return tell('This Hermes does not say which models it has. `/model <name>` sets one.');
    const { model, provider } = settings.of(turn);
    const { value } = await turn.ask.model({
      title: 'Model',
      providers,
      ...(provider === undefined ? {} : { current_provider: provider }),
      ...(model === undefined ? {} : { current_model: model }),
      timeout_ms: patience_ms,
    });
    if (turn.signal.aborted) return;
    if (value === null) return tell('The model stays as it is.');
    use(value.provider, value.model);
  };

  const common = commandsOf({
    endpoint: asked,
    models,
    settings,
    config,
    clock,
    modelOf: async (turn) => settings.of(turn).model ?? config.model ?? known?.can?.model ?? 'hermes-agent',
    past,
    isRunning: (turn) => running.has(turn),
    async answer(turn, question, before) {
      const can = await capabilities(turn.signal);
      if (can === undefined) return;
      // Its own memory still holds the answer that was not wanted.
      startOver(turn, turn.turn_id, 'gateway');
      await running.during(turn, () => answer(turn, can, question, before));
    },
  });
  const inRuns = (name: string, run: Command['run']): Command['run'] => {
    if (name === '/model') return async (turn) => chooseModel(turn, (await capabilities(turn.signal))!);
    if (name !== '/new') return run;
    return (turn) => {
      startOver(turn, turn.turn_id, undefined);
      return run?.(turn);
    };
  };
  const commands: Command[] = common
    .filter(({ name }) => name !== '/reasoning')
    .map((command) => {
      const own = inRuns(command.name, command.run);
      const other = plain.commands?.find(({ name }) => name === command.name)?.run;
      return { ...command, run: async (turn) => ((await capabilities(turn.signal)) === undefined ? other?.(turn) : own?.(turn)) };
    });

  const closing = new AbortController();
  return {
    name: 'hermes',
    version,
    commands,
    caps: { stream: true, reasoning: true, tools: true, pickers: ['model', 'choice', 'approval'], steer: true, delete: true, cron: false },
    attached(agent) {
      attached = agent;
      // So that the commands are right before the first turn, when it is there.
      capabilities(closing.signal).catch((error) => log.warn('agent.hermes_away', { error }));
    },
    onTurn: (turn) =>
      running.during(turn, async () => {
        const can = await capabilities(turn.signal);
        if (can === undefined) await plain.onTurn(turn);
        else await answer(turn, can, turn.message);
      }),
    onDeleted({ chat_id, thread_id, message_ids }) {
      // Hermes can't forget single messages: it forgets the session, and is told what is left.
      if (chat_id === undefined || !known?.can?.idempotent) return { removed: message_ids };
      const lane = { chat_id, thread_id };
      if (settings.of(lane).memory !== 'gateway') startOver(lane, message_ids.at(-1) ?? '', 'gateway');
      return { removed: message_ids };
    },
    close() {
      closing.abort(new Error('the agent has stopped'));
      models.close();
      plain.close?.();
    },
  };
}

const plainWord = (text: string): string => text.replace(/[^\w-]/g, '').slice(-40);

/** The address with `/v1` at its end, with or without which it may be given. */
function baseOf(url: string): string {
  const bare = url.replace(/\/+$/, '');
  return bare.endsWith('/v1') ? bare : `${bare}/v1`;
}
