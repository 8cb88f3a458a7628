import { fieldsOf, listOf, numberOf, stringOf } from './json.js';

/** What one chunk of a completion, or a whole one, holds. */
export interface Piece {
  readonly text: string;
  readonly reasoning: string;
  readonly model?: string;
  /** Why it ended: `stop`, `length`, `tool_calls`, … */
  readonly finish?: string;
  readonly usage?: Usage;
  /** The model wants a tool to be run. */
  readonly tools: boolean;
}

export interface Usage {
  readonly prompt_tokens?: number;
  readonly completion_tokens?: number;
  readonly total_tokens?: number;
  /** In US dollars; only when the endpoint says so. */
  readonly cost?: number;
}

/** Reads `choices[0]`, as `delta` (a chunk) or as `message` (an answer in one piece). */
export function pieceOf(value: unknown): Piece {
  const { model, choices, usage, x_groq } = fieldsOf(value);
  const choice = fieldsOf(listOf(choices)[0]);
  const said = fieldsOf(choice.delta ?? choice.message);
  const content = contentOf(said.content);
  const used = usageOf(usage) ?? usageOf(fieldsOf(x_groq).usage);
  const named = stringOf(model);
  const finish = stringOf(choice.finish_reason);
  return {
    text: content.text || (stringOf(said.refusal) ?? ''),
    reasoning: stringOf(said.reasoning_content) ?? stringOf(said.reasoning) ?? content.reasoning,
    ...(named === undefined ? {} : { model: named }),
    ...(finish === undefined ? {} : { finish }),
    ...(used === undefined ? {} : { usage: used }),
    tools: listOf(said.tool_calls).length > 0 || (said.function_call !== undefined && said.function_call !== null),
  };
}

/** A string, or parts with text in them; some servers put the reasoning there as well. */
function contentOf(content: unknown): { text: string; reasoning: string } {
  if (typeof content === 'string') return { text: content, reasoning: '' };
  let text = '';
  let reasoning = '';
  for (const part of listOf(content)) {
    const { type, text: plain, thinking } = fieldsOf(part);
    if (type === 'thinking') reasoning += stringOf(thinking) ?? contentOf(thinking).text;
    else text += stringOf(plain) ?? '';
  }
  return { text, reasoning };
}

function usageOf(value: unknown): Usage | undefined {
  const fields = fieldsOf(value);
  const entries = (['prompt_tokens', 'completion_tokens', 'total_tokens', 'cost'] as const).flatMap((name) => {
    const number = numberOf(fields[name]);
    return number === undefined ? [] : [[name, number] as const];
  });
  return entries.length === 0 ? undefined : (Object.fromEntries(entries) as Usage);
}

/** One model of `GET /models`. */
export interface ModelEntry {
  readonly id: string;
  /** Tokens, when the endpoint says so. */
  readonly context_tokens?: number;
}

export function modelsOf(value: unknown): ModelEntry[] {
  const { data, models } = fieldsOf(value);
  const list = Array.isArray(value) ? value : listOf(data ?? models);
  return list.flatMap((entry) => {
    const fields = fieldsOf(entry);
    const id = stringOf(fields.id) ?? stringOf(fields.name) ?? stringOf(entry);
    if (id === undefined) return [];
    const context =
      numberOf(fields.context_length) ??
      numberOf(fields.max_model_len) ??
      numberOf(fields.context_window) ??
      numberOf(fieldsOf(fields.meta).n_ctx);
    return [{ id, ...(context ? { context_tokens: context } : {}) }];
  });
}
