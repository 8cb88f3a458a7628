/** WebSocket close codes: the vocabulary of ending a connection, as `error` is that of refusing a request. */
export const closeCodes = {
  /** The message is larger than the limit. */
  too_big: 1009,
  /** A text frame is not UTF-8 (RFC 6455). */
  not_utf8: 1007,
  /** The edge goes away; connect again, anywhere. */
  restarting: 1012,
  /** The edge or the tenant has no room; try later. */
  full: 1013,
  /** The peer does not speak this protocol. */
  protocol: 4400,
  auth: 4401,
  /** The token or device was revoked. */
  revoked: 4403,
  /** No `hello` in time. */
  no_hello: 4408,
  /** A newer connection of the same device (or link of the same agent) took over. */
  replaced: 4409,
  rate: 4429,
} as const;
export type CloseReason = keyof typeof closeCodes;
export type CloseCode = (typeof closeCodes)[CloseReason];
