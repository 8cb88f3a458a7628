import { Type } from 'typebox';

/** What the process that serves the browser client is told. */
export const WebConfig = Type.Object({
  web_host: Type.String({ default: '127.0.0.1', description: 'address the browser client is served on' }),
  web_port: Type.Integer({ default: 8091, minimum: 0, maximum: 65_535, description: 'its port; 0 takes a free one' }),
  health_host: Type.String({ default: '127.0.0.1', description: 'address of /healthz, /readyz and /metrics' }),
  health_port: Type.Integer({ default: 0, minimum: 0, maximum: 65_535, description: 'their port; 0 takes a free one' }),
  log_level: Type.Enum(['debug', 'info', 'warn', 'error', 'silent'], {
    default: 'info',
    description: 'least severe log line that is written',
  }),
});
