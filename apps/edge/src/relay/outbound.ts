import type { Agent, PickerOption } from '@iris/agent-link';
import { outside, type RelayAction, type RelayEvent } from './contract.js';
import { type LaneWork, patience_ms } from './lane-work.js';

interface LaneId {
  readonly chat_id: string;
  readonly thread_id: string | null;
}

/**
 * What Hermes wants done. Resolves with what its result says beside `success`.
 * @throws Error with the reason, when it cannot be done
 */
export function outbound({
  agent,
  workOf,
  inbound,
}: {
  agent: Agent;
  workOf(lane: LaneId): LaneWork;
  inbound(lane: LaneId, text: string, more?: Partial<RelayEvent>): void;
}): (action: RelayAction) => Promise<object> {
  const laneOf = (action: RelayAction): LaneId => {
    const chat_id = word(action.chat_id);
    if (chat_id === '') throw new Error('chat_id is missing');
    const thread_id = word(action.metadata?.thread_id);
    return { chat_id: outside(chat_id), thread_id: thread_id === '' ? null : thread_id };
  };

  const send = (action: RelayAction): object => {
    const lane = laneOf(action);
    const given = action.content ?? '';
    const text = unmarked(given);
    if (text === '') throw new Error('there is nothing to send');
    const work = workOf(lane);
    // What it owed since before a restart is the answer.
    const final = action.metadata?.notify === true || text !== given;
    if (work.turn !== undefined)
      return { message_id: work.said(text, { final, grows: action.metadata?.expect_edits === true }) ?? 'unsaid' };
    if (work.said(text, { final, grows: false }) !== undefined) return { message_id: 'unsaid' };
    // By itself: cron, a job that came back, an answer that was owed since before a restart.
    const role = /^\s*Cronjob Response/.test(text) ? 'cron' : 'assistant';
    return { message_id: agent.lane(lane.chat_id, lane.thread_id).say(text, { role }) };
  };

  const prompt = (action: RelayAction): object => {
    const lane = laneOf(action);
    const prompt_id = word(action.prompt_id);
    const options = (action.options ?? []).map(optionOf);
    if (prompt_id === '') throw new Error('prompt_id is missing');
    const work = workOf(lane);
    const { ask } = work.turn ?? agent.lane(lane.chat_id, lane.thread_id);
    const timeout_ms = typeof action.timeout_s === 'number' && action.timeout_s > 0 ? action.timeout_s * 1_000 : patience_ms;
    const text = action.content ?? '';
    const question = { timeout_ms };
    const asked =
      options.length === 0 || action.prompt_kind === 'clarify'
        ? ask.clarify({ ...question, question: text, ...(options.length === 0 ? {} : { choices: options }), allow_text: true })
        : action.prompt_kind === 'confirm' || action.prompt_kind === 'choice'
          ? ask.choice({ ...question, title: text.slice(0, 200), choices: options })
          : ask.approval({ ...question, title: 'May this be done?', body: text, choices: options });
    work.asking(true);
    void asked.then(({ value }) => {
      work.asking(false);
      if (value === null) return;
      const label = options.find((one) => one.value === value)?.label;
      if (options.some((one) => one.value === value))
        inbound(lane, label ?? value, { prompt_response: { prompt_id, option_id: value, ...(label === undefined ? {} : { label }) } });
      else inbound(lane, value);
    });
    return { message_id: prompt_id };
  };

  return async (action) => {
    switch (action.op) {
      case 'send':
      case 'follow_up':
        return send(action);
      case 'edit': {
        const message_id = word(action.message_id);
        const final = action.finalize === true || action.final === true || action.metadata?.notify === true;
        if (!workOf(laneOf(action)).edited(message_id, action.content ?? '', final)) throw new Error('the message is finished');
        return { message_id };
      }
      case 'typing':
        workOf(laneOf(action)).typing(action.on !== false);
        return {};
      case 'prompt':
        return prompt(action);
      case 'delete': {
        const lane = laneOf(action);
        agent.lane(lane.chat_id, lane.thread_id).delete([word(action.message_id)]);
        return {};
      }
      case 'thread_create': {
        const { thread_id } = await agent.lane(laneOf(action).chat_id).createThread(word(action.name) || 'Thread');
        return { thread_id };
      }
      case 'thread_rename': {
        const lane = laneOf(action);
        const thread_id = word(action.thread_id) || lane.thread_id;
        const only = word(action.only_if_current_name);
        await agent.lane(lane.chat_id, thread_id).rename(word(action.name), only === '' ? {} : { only_if_current: only });
        return {};
      }
      case 'get_chat_info': {
        const { chat_id } = laneOf(action);
        const found = agent.channels().find((one) => one.chat_id === chat_id && one.thread_id === undefined);
        return { chat_info: { name: found?.name ?? chat_id, type: 'dm' } };
      }
      default:
        throw new Error(`${action.op} is not among supported_ops`);
    }
  };
}

const word = (value: unknown): string => (typeof value === 'string' ? value : typeof value === 'number' ? String(value) : '');

function optionOf(value: unknown): PickerOption {
  const fields = (typeof value === 'object' && value !== null ? value : {}) as { id?: unknown; option_id?: unknown; label?: unknown };
  const id = word(fields.option_id) || word(fields.id) || word(value);
  return { value: id, label: word(fields.label) || id };
}

/** Hermes marks an answer that it sends again after a crash; here it is the same message, and no duplicate. */
const unmarked = (text: string): string => text.replace(/^♻️ Recovered reply[^\n]*:\n\n/, '');
