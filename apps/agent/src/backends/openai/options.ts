import type { MediaEntry } from '@iris/agent-link';
import type { Clock, Log } from '@iris/runtime';
import type { Http, HttpAnswer } from '../../http/http.js';

/** How a model is asked. */
export interface ModelConfig {
  /** Default: the first one that the endpoint names. */
  readonly model?: string;
  readonly system_prompt?: string;
  /** Tokens the model holds; default: what the endpoint says of it. */
  readonly context_tokens?: number;
  /** UTF-16 code units of the past that go along with each question. */
  readonly history_chars: number;
  /** How often a request is made again before the first token. */
  readonly retries: number;
  /** Milliseconds without a byte after which a request is given up. */
  readonly silence_ms: number;
}

export interface ModelBackendOptions {
  readonly url: string;
  readonly key?: string;
  readonly http: Http;
  /** Reads a file of a message from the gateway. */
  readonly media: (url: string, signal: AbortSignal) => Promise<HttpAnswer>;
  /** Where choices of people outlast the process. */
  readonly dir?: string;
  readonly config: ModelConfig;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
}

/** What a person asked. */
export interface Question {
  readonly text: string;
  readonly media?: readonly MediaEntry[];
}
