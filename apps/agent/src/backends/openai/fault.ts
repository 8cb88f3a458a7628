import { OutOfReach, redactText } from '@iris/runtime';
import { type HttpAnswer, textOf } from '../../http/http.js';
import { retryAfter } from '../../http/retry.js';
import { fieldsOf, parsed, stringOf } from './json.js';

/** What went wrong at the endpoint, as a person may read it: without the key, and without what is behind the address. */
export class EndpointFault extends Error {
  override readonly name = 'EndpointFault';
  constructor(
    message: string,
    readonly more: {
      /** The request has certainly had no effect. */
      readonly unheard?: boolean;
      /** The same request may go well a moment later. */
      readonly passing?: boolean;
      /** Milliseconds, when the endpoint said so. */
      readonly retry_after_ms?: number;
      readonly status?: number;
      /** The endpoint's own name of it. */
      readonly code?: string;
    } = {},
  ) {
    super(message);
  }
}

const said_max = 300;
/** Bytes of an answer that is an error. */
const body_max = 64 * 1024;

/** Something an endpoint said, fit to be shown. */
export function shown(text: string, key: string | undefined): string {
  const plain = key ? text.replaceAll(key, '[hidden]') : text;
  const line = redactText(plain.replace(/\bsk-[\w*.-]{8,}/g, '[hidden]'))
    .replace(/\s+/g, ' ')
    .trim();
  return line.length > said_max ? `${line.slice(0, said_max)}…` : line;
}

/** The `error` of an answer, in the shapes that servers give it. */
export function errorIn(value: unknown): { message?: string; code?: string } | undefined {
  const { error, detail, message, object } = fieldsOf(value);
  if (error === undefined || error === null) {
    const text = stringOf(detail) ?? (object === 'error' ? stringOf(message) : undefined);
    return text === undefined ? undefined : { message: text };
  }
  const fields = fieldsOf(error);
  const text = stringOf(error) ?? stringOf(fields.message);
  const code = typeof fields.code === 'number' ? String(fields.code) : (stringOf(fields.code) ?? stringOf(fields.type));
  return { ...(text === undefined ? {} : { message: text }), ...(code === undefined ? {} : { code }) };
}

const passing: ReadonlySet<number> = new Set([408, 425, 429, 500, 502, 503, 504, 529]);
const saysStatus = new Map([
  [400, 'refuses the request'],
  [401, 'refuses the key'],
  [402, 'wants to be paid'],
  [403, 'refuses the key'],
  [404, 'knows no such model or address'],
  [413, 'finds the conversation too long'],
  [429, 'takes no more requests for now'],
]);

/** An answer that is no success. Reads it to its end. */
export async function statusFault(
  answer: HttpAnswer,
  place: { host: string; key: string | undefined; now: number },
): Promise<EndpointFault> {
  const { status } = answer;
  const text = await textOf(answer, body_max).catch(() => '');
  const said = errorIn(parsed(text)) ?? (/^\s*</.test(text) ? {} : { message: text });
  const message = said.message === undefined ? '' : shown(said.message, place.key);
  const retry_after_ms = retryAfter(answer.header('retry-after'), place.now);
  const what = saysStatus.get(status) ?? (status >= 500 ? 'has failed' : 'refuses the request');
  return new EndpointFault(`${place.host} ${what} (${status})${message === '' ? '' : `: ${message}`}`, {
    status,
    // Money does not come back by itself.
    passing: passing.has(status) && said.code !== 'insufficient_quota',
    ...(retry_after_ms === undefined ? {} : { retry_after_ms }),
    ...(said.code === undefined ? {} : { code: said.code }),
  });
}

const saysCode = new Map([
  ['ECONNREFUSED', 'does not answer'],
  ['ENOTFOUND', 'has no address'],
  ['EAI_AGAIN', 'could not be looked up'],
  ['ETIMEDOUT', 'does not answer'],
  ['EHOSTUNREACH', 'cannot be reached'],
  ['ENETUNREACH', 'cannot be reached'],
]);

/** Whatever a request was rejected with. */
export function networkFault(error: unknown, host: string): EndpointFault {
  if (error instanceof EndpointFault) return error;
  if (error instanceof OutOfReach) return new EndpointFault(`this agent may not ask ${host}: ${error.message}`);
  const code = (error as NodeJS.ErrnoException).code ?? '';
  if (/CERT|SELF_SIGNED|TLS|SSL|EPROTO/.test(code)) return new EndpointFault(`${host} cannot be trusted (${code})`);
  if (code === 'ERR_INVALID_CHAR') return new EndpointFault('the key holds characters that no key can hold');
  return new EndpointFault(`${host} ${saysCode.get(code) ?? 'broke the connection'}${code === '' ? '' : ` (${code})`}`, {
    passing: true,
    unheard: saysCode.has(code),
  });
}
