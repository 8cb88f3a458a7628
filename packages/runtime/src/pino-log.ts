import pino, { type Logger } from 'pino';
import type { Clock } from './clock.js';
import type { Log } from './log.js';
import { redact } from './redact.js';

export const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof logLevels)[number];

/**
 * Structured log lines as JSON, one a line, written before the call returns, so that a crash loses none.
 * Tokens, credentials in URLs and message text are hidden whoever passes them.
 */
export function pinoLog(options: {
  level: LogLevel;
  clock: Clock;
  /** Fields of every line, such as `part` and `instance`. */
  fields?: Record<string, unknown>;
  /** Default: standard output. */
  write?: (line: string) => void;
}): Log {
  const { level, clock, fields = {}, write } = options;
  const settings: pino.LoggerOptions = {
    level,
    base: null,
    messageKey: 'event',
    timestamp: () => `,"time":"${new Date(clock.now()).toISOString()}"`,
    formatters: { level: (label) => ({ level: label }) },
  };
  const root = write === undefined ? pino(settings, pino.destination({ dest: 1, sync: true })) : pino(settings, { write });
  return wrap(root).child(fields);
}

function wrap(logger: Logger): Log {
  const at = (level: 'debug' | 'info' | 'warn' | 'error') => (event: string, fields?: Record<string, unknown>) => {
    if (!logger.isLevelEnabled(level)) return;
    if (fields === undefined) logger[level](event);
    else logger[level](redact(fields) as object, event);
  };
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    child: (fields) => wrap(logger.child(redact(fields) as Record<string, unknown>)),
  };
}
