import type { Clock, Log } from '@iris/runtime';
import { type Http, type HttpAnswer, textOf } from '../../http/http.js';
import { backoff, pause, retry_after_max_ms } from '../../http/retry.js';
import { serverEvents } from '../../http/sse.js';
import { EndpointFault, networkFault, statusFault } from '../openai/fault.js';
import { type Fields, fieldsOf, parsed, stringOf } from '../openai/json.js';
import { silence } from '../openai/silence.js';
import { type Capabilities, capabilitiesOf, modelOptionsOf } from './capabilities.js';

export interface RunRequest {
  readonly input: string | readonly object[];
  readonly session_id: string;
  readonly instructions?: string;
  readonly conversation_history?: readonly object[];
  readonly model?: string;
  readonly provider?: string;
}

/** Hermes' Runs API. What it rejects with is an `EndpointFault`, or the reason of the signal. */
export interface Runs {
  readonly host: string;
  /** Undefined: no Hermes with runs. */
  capabilities(signal: AbortSignal): Promise<Capabilities | undefined>;
  /** Not ended by the turn's end: whoever began a run must learn its id, to be able to stop it. @param keys what makes it the same run */
  begin(request: RunRequest, keys: { run: string; session: string; repeatable: boolean }, signal: AbortSignal): Promise<string>;
  /** Events until the run is over; a connection that breaks is taken up again where that can be done, else the run is asked how it stands. */
  events(run_id: string, signal: AbortSignal): AsyncIterable<Fields>;
  steer(run_id: string, text: string): Promise<void>;
  stop(run_id: string): Promise<void>;
  approve(run_id: string, answer: { choice: string; request_id?: string }): Promise<void>;
  modelOptions(signal: AbortSignal): Promise<ReturnType<typeof modelOptionsOf>>;
  forgetSession(session_id: string): Promise<void>;
}

export interface RunsOptions {
  /** Ends in `/v1`. */
  readonly base: string;
  readonly key?: string;
  readonly http: Http;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  readonly retries: number;
  readonly silence_ms: number;
}

const call_ms = 30_000;
const poll_ms = 1_500;
/** How long a Hermes that was there may be away: a restart takes its time. */
const away_ms = 90_000;
const answer_max = 16 * 1024 * 1024;
const terminal: ReadonlySet<string> = new Set(['completed', 'failed', 'cancelled', 'interrupted']);
export const isTerminal = (event: string | undefined): boolean => event?.startsWith('run.') === true && terminal.has(event.slice(4));

export function runs(options: RunsOptions): Runs {
  const { base, key, http, clock, random, log } = options;
  const { host } = new URL(base);
  const root = base.replace(/\/v1$/, '');

  const headers = (more: Record<string, string> = {}) => ({
    accept: 'application/json',
    'content-type': 'application/json',
    'user-agent': 'iris-agent',
    ...(key ? { authorization: `Bearer ${key}` } : {}),
    ...more,
  });
  const never = new AbortController().signal;

  /** One short request; its answer as JSON. */
  async function call(
    method: 'GET' | 'POST' | 'DELETE',
    url: string,
    { body, signal = never, more = {} }: { body?: object; signal?: AbortSignal; more?: Record<string, string> } = {},
  ): Promise<unknown> {
    const quiet = silence(clock, call_ms, signal, () => new EndpointFault(`${host} does not answer`, { passing: true }));
    try {
      const answer = await http(url, {
        method,
        headers: headers(more),
        signal: quiet.signal,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      if (answer.status < 200 || answer.status > 299) throw await faultOf(answer);
      return parsed(await textOf(answer, answer_max));
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      throw networkFault(quiet.signal.aborted ? quiet.signal.reason : error, host);
    } finally {
      quiet.end();
    }
  }
  const faultOf = (answer: HttpAnswer) => statusFault(answer, { host, key, now: clock.now() });
  const run = (run_id: string, action = '') => `${base}/runs/${encodeURIComponent(run_id)}${action}`;

  async function* subscribe(
    run_id: string,
    after: string | undefined,
    signal: AbortSignal,
  ): AsyncGenerator<{ id?: string; fields: Fields }> {
    const quiet = silence(clock, options.silence_ms, signal, () => new EndpointFault(`${host} has said nothing for too long`));
    try {
      const answer = await http(run(run_id, '/events'), {
        headers: headers({ accept: 'text/event-stream', ...(after === undefined ? {} : { 'last-event-id': after }) }),
        signal: quiet.signal,
      });
      if (answer.status !== 200) throw await faultOf(answer);
      for await (const { data, id } of serverEvents(quiet.through(answer.chunks))) {
        yield { ...(id === undefined ? {} : { id }), fields: fieldsOf(parsed(data)) };
      }
    } catch (error) {
      throw quiet.signal.aborted ? quiet.signal.reason : error;
    } finally {
      quiet.end();
    }
  }

  /** How the run ended, once it has; what it was asked for meanwhile. As the event that would have said so. */
  async function* polled(run_id: string, signal: AbortSignal): AsyncGenerator<Fields> {
    let heard_at = clock.now();
    let asked: string | undefined;
    for (;;) {
      try {
        const status = fieldsOf(await call('GET', run(run_id), { signal }));
        heard_at = clock.now();
        const state = stringOf(status.status) ?? '';
        if (terminal.has(state)) return yield { ...status, event: `run.${state}` };
        const approval = fieldsOf(status.approval);
        const request = stringOf(approval.request_id) ?? stringOf(approval.command);
        if (state === 'waiting_for_approval' && request !== undefined && request !== asked) {
          asked = request;
          yield { ...approval, event: 'approval.request' };
        }
      } catch (error) {
        if (signal.aborted) throw error;
        const fault = networkFault(error, host);
        if (!fault.more.passing || clock.now() - heard_at > away_ms) throw fault;
      }
      await pause(clock, poll_ms, signal);
    }
  }

  return {
    host,
    async capabilities(signal) {
      try {
        return capabilitiesOf(await call('GET', `${base}/capabilities`, { signal }));
      } catch (error) {
        const { status } = error instanceof EndpointFault ? error.more : {};
        if (status === 404 || status === 405 || status === 501) return undefined;
        throw error;
      }
    },
    async begin(request, keys, signal) {
      for (let failed = 0; ; ) {
        try {
          const more = { 'idempotency-key': keys.run, 'x-hermes-session-key': keys.session };
          const run_id = stringOf(fieldsOf(await call('POST', `${base}/runs`, { body: request, more })).run_id);
          if (run_id === undefined) throw new EndpointFault(`${host} did not say which run it began`);
          return run_id;
        } catch (error) {
          const fault = networkFault(error, host);
          failed++;
          const wait = Math.max(fault.more.retry_after_ms ?? 0, backoff(failed, random));
          // Without a key that it understands, only what it has certainly not begun may be asked for again.
          const safe = keys.repeatable || fault.more.unheard || fault.more.status === 429 || fault.more.status === 503;
          if (!fault.more.passing || !safe || failed > options.retries || wait > retry_after_max_ms) throw fault;
          log.info('agent.retry', { host, failed, wait_ms: Math.round(wait), status: fault.more.status, reason: fault.message });
          await pause(clock, wait, signal);
        }
      }
    },
    async *events(run_id, signal) {
      let last: string | undefined;
      for (let attempt = 0; ; attempt++) {
        try {
          for await (const { id, fields } of subscribe(run_id, last, signal)) {
            last = id ?? last;
            yield fields;
            if (isTerminal(stringOf(fields.event))) return;
          }
        } catch (error) {
          if (signal.aborted) throw error;
          log.info('agent.run_events_lost', { run_id, reason: networkFault(error, host).message });
        }
        // Without ids all of it would come again; and who cannot go on now will not the next time.
        if (last === undefined || attempt > 0) break;
      }
      yield* polled(run_id, signal);
    },
    steer: async (run_id, text) => void (await call('POST', run(run_id, '/steer'), { body: { input: text } })),
    stop: async (run_id) => void (await call('POST', run(run_id, '/stop'), { body: {} })),
    approve: async (run_id, answer) => void (await call('POST', run(run_id, '/approval'), { body: answer })),
    modelOptions: async (signal) => modelOptionsOf(await call('GET', `${root}/api/model/options`, { signal })),
    forgetSession: async (session_id) => void (await call('DELETE', `${root}/api/sessions/${encodeURIComponent(session_id)}`)),
  };
}
