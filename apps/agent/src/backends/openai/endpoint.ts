import type { Clock, Log } from '@iris/runtime';
import { type Http, type HttpAnswer, textOf } from '../../http/http.js';
import { backoff, pause, retry_after_max_ms } from '../../http/retry.js';
import { serverEvents } from '../../http/sse.js';
import { EndpointFault, errorIn, networkFault, shown, statusFault } from './fault.js';
import { parsed } from './json.js';
import { type ModelEntry, modelsOf, type Piece, pieceOf } from './pieces.js';
import { silence } from './silence.js';
import { thinkFilter } from './think.js';

export type ContentPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image_url'; readonly image_url: { readonly url: string } };
export interface ChatMessage {
  readonly role: 'system' | 'user' | 'assistant';
  readonly content: string | readonly ContentPart[];
}
export interface Completion {
  readonly model: string;
  readonly messages: readonly ChatMessage[];
  /** Left out when undefined. */
  readonly reasoning_effort?: string;
}

/** An OpenAI-compatible endpoint. What it rejects with is an {@link EndpointFault}, or the reason of the signal. */
export interface Endpoint {
  /** Name and port, for people. */
  readonly host: string;
  models(signal: AbortSignal): Promise<readonly ModelEntry[]>;
  /**
   * The pieces of an answer as they come. Asked again, with growing pauses, as long as nothing has come and the reason is a passing one;
   * once a piece was given, an error ends it.
   */
  complete(completion: Completion, signal: AbortSignal): AsyncIterable<Piece>;
}

export interface EndpointOptions {
  /** With or without a `/` at the end; `/chat/completions` and `/models` are put behind it. */
  readonly url: string;
  readonly key?: string;
  readonly http: Http;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  /** How often a request is made again. */
  readonly retries: number;
  /** Milliseconds without a byte after which it is given up; long, since a large prompt takes a small machine minutes. */
  readonly silence_ms: number;
}

/** Bytes of an answer that is no stream. */
const answer_max = 16 * 1024 * 1024;

export function endpoint(options: EndpointOptions): Endpoint {
  const { http, clock, key, log, random } = options;
  const base = options.url.replace(/\/+$/, '');
  const host = hostOf(base);
  /** False once the endpoint has refused `stream_options`. */
  let asksUsage = true;

  const headers = (accept: string) => ({
    accept,
    'content-type': 'application/json',
    'user-agent': 'iris-agent',
    ...(key ? { authorization: `Bearer ${key}` } : {}),
  });
  const faultOf = (answer: HttpAnswer) => statusFault(answer, { host, key, now: clock.now() });

  async function* attempt(completion: Completion, signal: AbortSignal): AsyncGenerator<Piece> {
    const quiet = silence(
      clock,
      options.silence_ms,
      signal,
      () => new EndpointFault(`${host} has said nothing for ${seconds(options.silence_ms)}`),
    );
    try {
      const body = JSON.stringify({ ...completion, stream: true, ...(asksUsage ? { stream_options: { include_usage: true } } : {}) });
      const answer = await http(`${base}/chat/completions`, {
        method: 'POST',
        headers: headers('text/event-stream, application/json'),
        body,
        signal: quiet.signal,
      });
      quiet.heard();
      if (answer.status < 200 || answer.status > 299) throw await faultOf(answer);
      const streamed = /event-stream/i.test(answer.header('content-type') ?? '');
      yield* streamed
        ? stream(quiet.through(answer.chunks))
        : whole({ ...answer, header: answer.header, chunks: quiet.through(answer.chunks) });
    } catch (error) {
      // What the aborted request says of itself says less than why it was aborted.
      throw quiet.signal.aborted ? quiet.signal.reason : error;
    } finally {
      quiet.end();
    }
  }

  async function* stream(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Piece> {
    let finished = false;
    const think = thinkFilter();
    for await (const { event, data } of serverEvents(chunks)) {
      if (data.trim() === '[DONE]') {
        finished = true;
        break;
      }
      const value = parsed(data);
      const error = errorIn(value) ?? (event === 'error' ? { message: data } : undefined);
      if (error) throw new EndpointFault(`${host}: ${shown(error.message ?? 'an error without a word', key)}`, codeOf(error.code));
      if (value === undefined) throw new EndpointFault(`${host} sent something that is no completion`);
      const piece = pieceOf(value);
      if (piece.finish !== undefined) finished = true;
      const parts = think.feed(piece.text);
      yield { ...piece, text: parts.text, reasoning: piece.reasoning + parts.reasoning };
    }
    const { text, reasoning } = think.end();
    if (text !== '' || reasoning !== '') yield { text, reasoning, tools: false };
    if (!finished) throw new EndpointFault(`${host} broke off in the middle of the answer`, { passing: true });
  }

  /** Some servers answer in one piece whatever they were asked. */
  async function* whole(answer: HttpAnswer): AsyncGenerator<Piece> {
    const text = await textOf(answer, answer_max);
    const value = parsed(text);
    const error = errorIn(value);
    if (error) throw new EndpointFault(`${host}: ${shown(error.message ?? 'an error without a word', key)}`, codeOf(error.code));
    if (value === undefined) throw new EndpointFault(`${host} sent something that is no completion: is the address right?`);
    const piece = pieceOf(value);
    const think = thinkFilter();
    const [first, last] = [think.feed(piece.text), think.end()];
    yield { ...piece, text: first.text + last.text, reasoning: piece.reasoning + first.reasoning + last.reasoning };
  }

  return {
    host,
    async models(signal) {
      try {
        const quiet = silence(clock, 15_000, signal, () => new EndpointFault(`${host} does not say which models it has`));
        try {
          const answer = await http(`${base}/models`, { headers: headers('application/json'), signal: quiet.signal });
          if (answer.status !== 200) throw await faultOf(answer);
          return modelsOf(parsed(await textOf(answer, answer_max)));
        } catch (error) {
          throw quiet.signal.aborted ? quiet.signal.reason : error;
        } finally {
          quiet.end();
        }
      } catch (error) {
        throw signal.aborted ? error : networkFault(error, host);
      }
    },
    async *complete(completion, signal) {
      for (let failed = 0; ; ) {
        let begun = false;
        try {
          for await (const piece of attempt(completion, signal)) {
            begun ||= piece.text !== '' || piece.reasoning !== '';
            yield piece;
          }
          return;
        } catch (error) {
          if (signal.aborted) throw error;
          const fault = networkFault(error, host);
          if (begun) throw fault;
          if (asksUsage && refusesUsage(fault)) {
            asksUsage = false;
            continue;
          }
          failed++;
          const wait = Math.max(fault.more.retry_after_ms ?? 0, backoff(failed, random));
          if (!fault.more.passing || failed > options.retries || wait > retry_after_max_ms) throw fault;
          log.info('agent.retry', { host, failed, wait_ms: Math.round(wait), status: fault.more.status, reason: fault.message });
          await pause(clock, wait, signal);
        }
      }
    },
  };
}

const refusesUsage = ({ message, more }: EndpointFault): boolean =>
  more.status !== undefined && more.status >= 400 && more.status < 500 && /stream_options|include_usage/.test(message);
/** An error in a stream that has not begun: the server's trouble passes, a refusal does not. */
const codeOf = (code: string | undefined) => ({
  passing: code === undefined || /^(5\d\d|429)$|server_error|overloaded|rate_limit|unavailable|internal/i.test(code),
  ...(code === undefined ? {} : { code }),
});
const seconds = (ms: number): string => `${Math.round(ms / 1_000)} s`;

function hostOf(url: string): string {
  try {
    return new URL(url).host;
  } catch {
    return 'the address';
  }
}
