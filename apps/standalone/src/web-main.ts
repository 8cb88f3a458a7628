import { loadConfig, runPart } from '@iris/runtime';
import { startWeb } from '@iris/web';
import { WebProcessConfig } from './web-config.js';

const config = loadConfig(WebProcessConfig);

await runPart('web', config, async ({ life }) => {
  await life.start(
    'web',
    () => startWeb({ host: config.web_host, port: config.web_port }),
    (one) => one.close(),
  );
});
