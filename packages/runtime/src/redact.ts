/** Field names whose values never reach a log, whatever is around them. */
const secretName = /token|secret|password|authorization|api_?key|^text$|^final_text$|_topic$/i;
/** Ids of tokens are names, not secrets. */
const plainName = /^token_id$|^tokens$/i;
/** Credentials inside text: in URLs, and after `Bearer`. */
const inText = /(\/\/[^/\s:@]*:)[^@\s/]+@|(\bBearer\s+)[^\s"']+|(\biris-(?:device|agent|push|admin)\.[\w-]+\.)[\w-]+/gi;
const hidden = '[hidden]';
const deepest = 6;

/** A copy that is fit to be written down: no tokens, no text of messages, nothing endless. */
export function redact(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return redactText(value);
  if (typeof value === 'bigint') return value.toString();
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof Error) return redactError(value, depth);
  if (depth >= deepest) return '[deep]';
  if (value instanceof Uint8Array) return `[${value.length} bytes]`;
  if (Array.isArray(value)) {
    const items = value.slice(0, 50).map((item) => redact(item, depth + 1));
    return value.length > 50 ? [...items, `[${value.length - 50} more]`] : items;
  }
  if (value instanceof Map) return redact([...value.entries()], depth);
  if (value instanceof Set) return redact([...value], depth);
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      name,
      inner !== undefined && inner !== null && secretName.test(name) && !plainName.test(name) ? hidden : redact(inner, depth + 1),
    ]),
  );
}

export const redactText = (text: string): string =>
  (text.length > 2_000 ? `${text.slice(0, 2_000)}…` : text).replace(inText, (_, url?: string, bearer?: string, token?: string) =>
    url !== undefined ? `${url}${hidden}@` : `${bearer ?? token}${hidden}`,
  );

function redactError(error: Error, depth: number): unknown {
  const { name, message, stack } = error;
  const code = (error as NodeJS.ErrnoException).code;
  return {
    name,
    message: redactText(message),
    ...(code === undefined ? {} : { code }),
    ...(stack === undefined ? {} : { stack: redactText(stack) }),
    ...(error.cause === undefined || depth >= deepest ? {} : { cause: redact(error.cause, depth + 1) }),
  };
}
