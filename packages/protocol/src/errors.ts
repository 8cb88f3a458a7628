/** The six codes of the wire protocol. Nothing else ever stands in an `error` frame. */
export const errorCodes = ['auth', 'not_found', 'rate_limited', 'media_too_large', 'unsupported', 'internal'] as const;
export type ErrorCode = (typeof errorCodes)[number];

/**
 * A request that is answered with an `error` frame. Handlers throw it; one place per process catches it.
 * Anything else that is thrown becomes `internal`, and its cause goes to the log, never to the wire.
 */
export class RequestError extends Error {
  override readonly name = 'RequestError';
  constructor(
    readonly code: ErrorCode,
    message: string,
    /** Milliseconds; only with `rate_limited`. */
    readonly retry_after_ms?: number,
  ) {
    super(message);
  }
}

export const unsupported = (message: string): RequestError => new RequestError('unsupported', message);
/** One text per kind of thing, whatever the id: a foreign id must read exactly as one that never existed. */
export const notFound = (what: string): RequestError => new RequestError('not_found', `${what} unknown`);
export const rateLimited = (message: string, retry_after_ms: number): RequestError =>
  new RequestError('rate_limited', message, Math.max(1, Math.ceil(retry_after_ms)));
