import type { Turn } from '@iris/agent-link';
import type { Backend } from '../../backend.js';
import { titleOf } from '../../title.js';
import { attachments } from './attachments.js';
import { commandsOf } from './commands.js';
import { type ChatMessage, type Completion, endpoint } from './endpoint.js';
import { EndpointFault } from './fault.js';
import { laneSettings } from './lane-settings.js';
import { modelList, shortName } from './model-list.js';
import type { ModelBackendOptions, Question } from './options.js';
import { conversation, type PastMessage, pastLimits, readPast } from './past.js';
import { runningLanes } from './running-lanes.js';

const version = '1.0.0';

/**
 * Any OpenAI-compatible endpoint as an agent. It has no memory of its own: what was said comes from the gateway, so what people delete
 * is forgotten with it, and any process of it can run any turn.
 */
export function openaiBackend(options: ModelBackendOptions): Backend {
  const { clock, log, config } = options;
  const asked = endpoint({ ...options, retries: config.retries, silence_ms: config.silence_ms });
  const models = modelList(asked, clock);
  const settings = laneSettings({ log, ...(options.dir === undefined ? {} : { dir: options.dir }) });
  const running = runningLanes();

  const past = (turn: Turn) =>
    readPast(
      turn,
      pastLimits(config.history_chars, () => commands),
    );

  const modelOf = async (turn: Turn): Promise<string> => {
    const chosen = settings.of(turn).model ?? config.model;
    if (chosen !== undefined) return chosen;
    const [first] = await models.get(turn.signal);
    if (first === undefined) throw new EndpointFault(`${asked.host} has no models`);
    return first.id;
  };

  async function answer(turn: Turn, question: Question, before: readonly PastMessage[]): Promise<void> {
    const model = await modelOf(turn);
    models.warm();
    turn.meta({ model: shortName(model), runtime: { model: shortName(model) } });
    const attached = await attachments(question.media ?? [], {
      signal: turn.signal,
      log,
      http: (url, signal) => options.media(url, signal),
    });
    for (const note of attached.notes) turn.say(note, { role: 'system' });
    const { reasoning } = settings.of(turn);
    const completion: Completion = {
      model,
      messages: [...instructions(config.system_prompt), ...conversation(before), asUser(question.text, attached.parts)],
      ...(reasoning === undefined ? {} : { reasoning_effort: reasoning }),
    };
    let written = '';
    let tools = false;
    let finish: string | undefined;
    for await (const piece of asked.complete(completion, turn.signal)) {
      if (piece.reasoning !== '') turn.reason(piece.reasoning);
      if (piece.text !== '') turn.write(piece.text);
      // Only whether there is something that can be read.
      if (written.trim() === '') written += piece.text;
      tools ||= piece.tools;
      finish = piece.finish ?? finish;
      const { usage } = piece;
      if (piece.model !== undefined) turn.meta({ model: shortName(piece.model), runtime: { model: shortName(piece.model) } });
      if (usage === undefined) continue;
      const context = config.context_tokens ?? models.contextOf(model);
      const used = usage.total_tokens ?? (usage.prompt_tokens ?? 0) + (usage.completion_tokens ?? 0);
      turn.meta({
        usage: { ...usage },
        ...(usage.completion_tokens === undefined ? {} : { tokens: Math.round(usage.completion_tokens) }),
        runtime: {
          ...(context === undefined || used === 0 ? {} : { context_pct: Math.min(100, Math.round((100 * used) / context)) }),
          ...(usage.cost === undefined ? {} : { cost: usage.cost }),
        },
      });
    }
    if (turn.signal.aborted) return;
    if (written.trim() === '') throw new EndpointFault(whyEmpty(model, tools, finish));
    turn.stop();
    if (finish === 'length') turn.say('The answer was cut off: the model has reached its limit.', { role: 'system' });
    if (finish === 'content_filter') turn.say('The answer was cut off by the content filter of the endpoint.', { role: 'system' });
    if (turn.channel?.auto) {
      const title = titleOf(question.text);
      if (title !== undefined && title !== turn.channel.name) turn.title(title);
    }
  }

  const commands = commandsOf({
    endpoint: asked,
    models,
    settings,
    config,
    clock,
    modelOf,
    past,
    isRunning: (turn) => running.has(turn),
    answer: (turn, question, before) => running.during(turn, () => answer(turn, question, before)),
  });

  return {
    name: 'openai',
    version,
    commands,
    caps: { stream: true, reasoning: true, tools: false, pickers: ['model', 'choice'], steer: false, delete: true, cron: false },
    onTurn: (turn) => running.during(turn, async () => answer(turn, turn.message, await past(turn))),
    onDeleted: ({ message_ids }) => ({ removed: message_ids }),
    close: () => models.close(),
  };
}

const instructions = (text: string | undefined): ChatMessage[] => (text === undefined ? [] : [{ role: 'system', content: text }]);

/** A question with what came with it, in the simplest form that holds all of it. */
export function asUser(text: string, parts: Awaited<ReturnType<typeof attachments>>['parts']): ChatMessage {
  if (parts.length === 0) return { role: 'user', content: text };
  const all = text.trim() === '' ? parts : [{ type: 'text', text } as const, ...parts];
  // Servers for text alone don't know parts.
  if (all.every((part) => part.type === 'text')) return { role: 'user', content: all.map((part) => part.text).join('\n\n') };
  return { role: 'user', content: all };
}

function whyEmpty(model: string, tools: boolean, finish: string | undefined): string {
  if (tools) return `${shortName(model)} wanted to use a tool, and there are none here`;
  if (finish === 'length') return `${shortName(model)} has reached its limit before it answered`;
  return `${shortName(model)} answered with nothing`;
}
