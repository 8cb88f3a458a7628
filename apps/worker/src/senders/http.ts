import type { Clock } from '@iris/runtime';

export interface HttpRequest {
  readonly method: 'POST' | 'DELETE' | 'PUT';
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
}
export interface HttpAnswer {
  readonly status: number;
  /** By names in small letters. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly text: string;
}
/** One request. Rejects with {@link HttpFailure} when there is no answer in time. */
export type Http = (request: HttpRequest, options: { timeout_ms: number }) => Promise<HttpAnswer>;

/** Nothing was heard of the other side; whether it has heard us is unknown. */
export class HttpFailure extends Error {
  override readonly name = 'HttpFailure';
}

/** Answers say little; more than this is not looked at. */
const answerMax = 16 * 1024;

/** By `fetch`, which keeps connections. Redirects are not followed: a push goes to whom it is for. */
export function fetchHttp(clock: Clock): Http {
  return async ({ method, url, headers, body }, { timeout_ms }) => {
    const controller = new AbortController();
    const timer = clock.after(timeout_ms, () => controller.abort());
    try {
      const given = body === undefined ? {} : { body: body as Exclude<RequestInit['body'], undefined> };
      const response = await fetch(url, { method, headers, redirect: 'manual', signal: controller.signal, ...given });
      const text = await response.text();
      return { status: response.status, headers: Object.fromEntries(response.headers), text: text.slice(0, answerMax) };
    } catch (error) {
      if (controller.signal.aborted) throw new HttpFailure(`no answer within ${timeout_ms} ms`);
      const cause = (error as Error).cause as NodeJS.ErrnoException | undefined;
      throw new HttpFailure(cause?.code ?? (error as Error).message);
    } finally {
      timer.cancel();
    }
  };
}
