/**
 * The ways in which a Hermes can attach. `hermes(stand)` is what Hermes is told, `attach(stand)` starts what stands between it and the
 * gateway, if anything does. `limits`: rows that the way cannot carry, and whose limit that is.
 */
import { cpSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { baseConfig } from './hermes.mjs';
import { startProgram } from './stand.mjs';

const inRoot = (path) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const key = 'the-key-of-the-api-server-0123456789';

const answers = async (url) => {
  try {
    return (await fetch(url, { signal: AbortSignal.timeout(2_000) })).ok;
  } catch {
    return false;
  }
};

export const ways = {
  runner: {
    label: 'the hermes runner, over the Runs API',
    hermes: ({ model, api_port }) => ({
      config: baseConfig({ model_url: model.url, more: 'platform_toolsets:\n  api_server: [terminal, clarify]\n' }),
      env: { API_SERVER_ENABLED: 'true', API_SERVER_KEY: key, API_SERVER_PORT: String(api_port), API_SERVER_HOST: '127.0.0.1' },
      ready: () => answers(`http://127.0.0.1:${api_port}/health`),
    }),
    attach: ({ api_port, agent_url, tenant, dir }) =>
      startProgram(
        inRoot('apps/agent/bin/iris-agent.js'),
        ['--gateway', agent_url, '--hermes', `http://127.0.0.1:${api_port}`, '--spool', join(dir, 'spool')],
        { env: { IRIS_AGENT_TOKEN: tenant.agent_token, IRIS_AGENT_KEY: key }, log_file: join(dir, 'runner.log') },
      ),
    limits: {
      clarify: 'Hermes: the Runs API has no way to ask the person',
      reasoning: 'Hermes: the Runs API gives no reasoning of the model (its reasoning.available is the answer again)',
      'picker.model': 'Hermes: no GET /api/model/options',
      'media out': 'Hermes: the Runs API gives text, and no files',
      'picture out': 'Hermes: the Runs API gives text, and no files',
      cron: 'Hermes: the Runs API has no place where a job could be delivered',
    },
  },
  relay: {
    label: 'unmodified, over its own relay contract, with four environment variables',
    hermes: ({ model, home, http_url, tenant }) => ({
      config: baseConfig({ model_url: model.url, more: 'platform_toolsets:\n  relay: [terminal, clarify]\n' }),
      env: {
        GATEWAY_RELAY_URL: http_url,
        GATEWAY_RELAY_ID: tenant.agent_token,
        GATEWAY_RELAY_SECRET: tenant.agent_token,
        GATEWAY_RELAY_PLATFORMS: 'relay',
      },
      ready: () => linked(home),
    }),
    cron_to: 'relay:android:default',
    may_end_early: true,
    last: ['approval'],
    approvals: ['once'],
    limits: {
      streaming: 'Hermes: its relay adapter edits no messages, so an answer comes whole',
      reasoning: 'the relay contract has no reasoning',
      tools: 'the relay contract has no tools; their text comes as commentary',
      footer: 'the relay contract has no model, tokens or cost; the latency is measured here',
      'picker.model': 'Hermes: over the relay /model is a list in words',
      title: 'Hermes: its relay adapter renames no threads',
      'media in': 'Hermes: its relay adapter fetches no files, and shows the model none',
      'media out': 'Hermes: its relay adapter sends no files',
      'picture in': 'Hermes: its relay adapter fetches no files, and shows the model none',
      'picture out': 'Hermes: its relay adapter sends no files',
      deletion: 'the relay contract has no deletion',
      cron: 'Hermes: its scheduler finds no delivery target at the relay',
    },
  },
  plugin: {
    label: 'the plugin, over the agent link',
    cron_to: 'iris',
    hermes({ model, home, agent_url, tenant }) {
      mkdirSync(join(home, 'plugins'), { recursive: true });
      cpSync(inRoot('integrations/hermes/iris'), join(home, 'plugins', 'iris'), { recursive: true });
      return {
        config: baseConfig({
          model_url: model.url,
          more: `plugins:
  enabled: [iris]
streaming:
  enabled: true
  edit_interval: 0.1
  buffer_threshold: 1
platform_toolsets:
  iris: [terminal, clarify]
`,
        }),
        env: { IRIS_GATEWAY_URL: agent_url, IRIS_AGENT_TOKEN: tenant.agent_token },
        ready: () => linked(home),
      };
    },
    limits: {},
  },
};

/** Hermes writes down which platforms are connected. */
function linked(home) {
  try {
    const { platforms } = JSON.parse(readFileSync(join(home, 'gateway_state.json'), 'utf8'));
    return Object.values(platforms).some(({ state }) => state === 'connected');
  } catch {
    return false;
  }
}
