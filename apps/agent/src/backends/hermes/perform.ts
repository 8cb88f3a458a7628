import type { Stream, Tool, Turn } from '@iris/agent-link';
import type { Log } from '@iris/runtime';
import { EndpointFault, shown } from '../openai/fault.js';
import { type Fields, fieldsOf, listOf, numberOf, stringOf } from '../openai/json.js';
import { shortName } from '../openai/model-list.js';
import type { Runs } from './runs.js';

/** As long as Hermes waits for an answer itself, and a little less. */
const approval_ms = 290_000;
const labels = new Map([
  ['once', { label: 'Allow once', style: 'primary' }],
  ['session', { label: 'Allow for this session' }],
  ['always', { label: 'Always allow' }],
  ['deny', { label: 'Deny', style: 'danger' }],
]);

export interface Performed {
  /** Everything that was said. */
  readonly text: string;
  /** What was steered and has not arrived. */
  readonly pending: string | undefined;
}

/**
 * Shows a run as it goes: text, reasoning, tools, approvals. Resolves when it has completed.
 * @throws EndpointFault when it failed, was cancelled or interrupted
 */
export async function perform(turn: Turn, run_id: string, parts: { runs: Runs; key: string | undefined; log: Log }): Promise<Performed> {
  const { runs, log } = parts;
  const tools = new Map<string, Tool[]>();
  const approvals = new Map<string, AbortController>();
  /** The bubble that grows now; a tool between two texts makes them two. */
  let segment: { stream: Stream; text: string; reasoning: boolean } | undefined;
  const closed: string[] = [];
  /** Answers of ours that Hermes has not confirmed yet. */
  let given = 0;
  const open = () => {
    segment ??= { stream: turn.stream(), text: '', reasoning: false };
    return segment;
  };
  const reason = (text: string, streamed: boolean) => {
    const begins = (said = '') => said.trim().startsWith(text.trim());
    if (text === '') return;
    // Versions that stream it say it again as a whole; 0.19 says the beginning of the answer itself.
    if (!streamed && (segment?.reasoning || begins(segment?.text) || begins(closed.at(-1)))) return;
    const one = open();
    one.reasoning = true;
    one.stream.reason(text);
  };

  const ask = async (event: Fields): Promise<void> => {
    const request_id = stringOf(event.request_id);
    const command = stringOf(event.command);
    const description = stringOf(event.description);
    const offered = listOf(event.choices).flatMap((choice) => stringOf(choice) ?? []);
    const choices = offered.length > 0 ? offered : ['once', 'deny'];
    const withdraw = new AbortController();
    const name = request_id ?? command ?? '';
    // Said again after a lost connection: it is open already.
    if (approvals.has(name)) return;
    approvals.set(name, withdraw);
    const { value, reason: why } = await turn.ask.approval({
      title: 'May this be done?',
      ...(description === undefined ? {} : { body: description }),
      ...(command === undefined ? {} : { command }),
      choices: choices.map((value) => ({ value, ...(labels.get(value) ?? { label: value }) })),
      timeout_ms: approval_ms,
      signal: withdraw.signal,
    });
    approvals.delete(name);
    if (value === null && why !== 'expired') return;
    given++;
    try {
      await runs.approve(run_id, { choice: value ?? 'deny', ...(request_id === undefined ? {} : { request_id }) });
    } catch (error) {
      given--;
      log.warn('agent.approval_unheard', { run_id, error });
      turn.say(value === null ? 'Nobody answered, and it was not done.' : 'The agent no longer waited for this answer.', {
        role: 'system',
      });
    }
  };

  /** What it says at the end counts: a stream may have lost some of it. */
  const conclude = (output: string): void => {
    const said = segment?.text ?? '';
    const known = output.trim() === '' || output.trim() === (said === '' ? closed.at(-1) : said)?.trim();
    if (!known) {
      const { stream } = open();
      if (output.startsWith(said)) stream.write(output.slice(said.length));
      else stream.replace(output);
    }
    if (segment) closed.push(known ? said : output);
    segment?.stream.stop();
  };

  for await (const event of runs.events(run_id, turn.signal)) {
    switch (event.event) {
      case 'message.delta': {
        const text = stringOf(event.delta) ?? '';
        if (text === '') break;
        const one = open();
        one.text += text;
        one.stream.write(text);
        break;
      }
      case 'reasoning.delta':
        reason(stringOf(event.delta) ?? stringOf(event.text) ?? '', true);
        break;
      case 'reasoning.available':
        reason(stringOf(event.text) ?? '', false);
        break;
      case 'tool.started': {
        // A bubble that only thinks goes on behind the tool.
        if (segment !== undefined && segment.text !== '') {
          segment.stream.stop();
          closed.push(segment.text);
          segment = undefined;
        }
        const name = stringOf(event.tool) ?? 'tool';
        const preview = stringOf(event.preview);
        tools.set(name, [...(tools.get(name) ?? []), turn.tool(name, preview === undefined ? {} : { preview })]);
        break;
      }
      case 'tool.completed': {
        const [tool, ...others] = tools.get(stringOf(event.tool) ?? 'tool') ?? [];
        tools.set(stringOf(event.tool) ?? 'tool', others);
        const duration = numberOf(event.duration);
        tool?.end({ ok: event.error !== true, ...(duration === undefined ? {} : { duration }) });
        break;
      }
      case 'approval.request':
        void ask(event);
        break;
      case 'approval.responded': {
        // Also when it was answered elsewhere, or when its time had passed. Without a name it is the oldest one, unless it was ours.
        const name = stringOf(event.request_id);
        if (name !== undefined) approvals.get(name)?.abort();
        else if (given === 0) [...approvals.values()][0]?.abort();
        given = Math.max(0, given - 1);
        break;
      }
      case 'run.completed': {
        used(turn, event);
        conclude(stringOf(event.output) ?? '');
        return { text: closed.join('\n\n'), pending: stringOf(event.pending_steer) };
      }
      case 'run.failed':
        throw new EndpointFault(shown(stringOf(event.error) ?? stringOf(fieldsOf(event.error).message) ?? 'the run has failed', parts.key));
      case 'run.cancelled':
        throw new EndpointFault('the run was cancelled at the agent');
      case 'run.interrupted':
        throw new EndpointFault('the agent was restarted in the middle of the run');
    }
  }
  throw new EndpointFault(`${runs.host} does not say how the run ended`);
}

function used(turn: Turn, event: Fields): void {
  const { input_tokens, output_tokens, total_tokens, cost_usd } = fieldsOf(event.usage);
  const model = stringOf(event.model);
  const tokens = numberOf(output_tokens);
  const cost = numberOf(cost_usd);
  const usage = { input_tokens, output_tokens, total_tokens };
  turn.meta({
    ...(tokens === undefined ? {} : { tokens: Math.round(tokens), usage }),
    ...(model === undefined ? {} : { model: shortName(model) }),
    runtime: { ...(cost === undefined ? {} : { cost }), ...(model === undefined ? {} : { model: shortName(model) }) },
  });
}
