import { PartConfig } from '@iris/runtime';
import { Type } from 'typebox';

/** What the process that serves the browser client is told. */
export const WebProcessConfig = Type.Object({
  ...PartConfig.properties,
  web_host: Type.String({ default: '127.0.0.1', description: 'address the browser client is served on' }),
  web_port: Type.Integer({ default: 8091, minimum: 0, maximum: 65_535, description: 'its port; 0 takes a free one' }),
});
