/** A Firefox without a window, driven over WebDriver BiDi, on a profile of its own. */
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { WebSocket } from 'ws';

const names = ['firefox-esr', 'firefox'];

/** Path of a Firefox, or undefined: `IRIS_TEST_FIREFOX`, else one in the PATH. */
export function findFirefox() {
  const folders = (process.env.PATH ?? '').split(delimiter);
  const paths = [process.env.IRIS_TEST_FIREFOX, ...names.flatMap((name) => folders.map((folder) => join(folder, name)))];
  return paths.find((path) => path !== undefined && path !== '' && existsSync(path));
}

/**
 * @param {{path: string, preferences: Record<string, string | number | boolean>}} options
 * @returns a page of it; every call rejects when the browser says no
 */
export async function startFirefox({ path, preferences }) {
  const home = mkdtempSync(join(tmpdir(), 'iris-firefox-'));
  const profile = join(home, 'profile');
  mkdirSync(profile);
  const lines = Object.entries({ ...quiet, ...preferences }).map(
    ([name, value]) => `user_pref(${JSON.stringify(name)}, ${JSON.stringify(value)});`,
  );
  writeFileSync(join(profile, 'user.js'), `${lines.join('\n')}\n`);
  const args = [
    '--headless',
    '--no-remote',
    '--profile',
    profile,
    '--remote-debugging-port',
    '0',
    '--remote-allow-system-access',
    'about:blank',
  ];
  const child = spawn(path, args, {
    env: { ...process.env, HOME: home, MOZ_DISABLE_CONTENT_SANDBOX: '1' },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  let log = '';
  const address = await new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(`Firefox did not start within a minute:\n${log}`)), 60_000);
    child.stderr.on('data', (data) => {
      log += data;
      const found = /WebDriver BiDi listening on (ws:\S+)/.exec(log)?.[1];
      if (found === undefined) return;
      clearTimeout(late);
      resolve(found);
    });
    void ended.then(() => reject(new Error(`Firefox ended:\n${log}`)));
  });
  const line = await connect(`${address}/session`);
  const close = async () => {
    line.close();
    child.kill('SIGKILL');
    await ended;
    rmSync(home, { recursive: true, force: true, maxRetries: 5 });
  };
  try {
    await line.ask('session.new', { capabilities: {} });
    const { contexts } = await line.ask('browsingContext.getTree', {});
    const { context } = contexts[0];
    return {
      context,
      ask: line.ask,
      open: (url) => line.ask('browsingContext.navigate', { context, url, wait: 'complete' }),
      /** Runs an async function's text in the page, or with `chrome` in the browser itself; its value as JSON. */
      run: (text, where = { context }) => run(line, text, where),
      /** The browser's own window. */
      async chrome() {
        const tree = await line.ask('browsingContext.getTree', { 'moz:scope': 'chrome' });
        return { context: tree.contexts[0].context };
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** It talks to nobody but those it is told to. */
const quiet = {
  'app.update.disabledForTesting': true,
  'browser.shell.checkDefaultBrowser': false,
  'browser.startup.homepage_override.mstone': 'ignore',
  // What its own automation would switch off, the connection to the push service among it.
  'remote.prefs.recommended': false,
  'dom.push.connection.enabled': true,
  'datareporting.policy.dataSubmissionEnabled': false,
  'extensions.systemAddon.update.enabled': false,
  'network.captive-portal-service.enabled': false,
  'network.connectivity-service.enabled': false,
  'services.settings.server': 'data:,#remote-settings-dummy/v1',
  'toolkit.telemetry.enabled': false,
};

async function run(line, text, target) {
  const expression = `(async () => JSON.stringify(await (${text})()) ?? 'null')()`;
  const { result, exceptionDetails } = await line.ask('script.evaluate', { expression, target, awaitPromise: true });
  if (exceptionDetails !== undefined) throw new Error(exceptionDetails.text);
  return JSON.parse(result.value);
}

async function connect(url) {
  const socket = new WebSocket(url);
  await new Promise((resolve, reject) => {
    socket.once('open', resolve);
    socket.once('error', reject);
  });
  const asked = new Map();
  let last = 0;
  socket.on('message', (data) => {
    const { id, result, error, message } = JSON.parse(String(data));
    const one = asked.get(id);
    asked.delete(id);
    if (one === undefined) return;
    if (error === undefined) one.resolve(result);
    else one.reject(new Error(`${one.method}: ${error}: ${message}`));
  });
  socket.on('close', () => {
    for (const { reject } of asked.values()) reject(new Error('Firefox is gone'));
    asked.clear();
  });
  return {
    ask: (method, params) =>
      new Promise((resolve, reject) => {
        asked.set(++last, { method, resolve, reject });
        socket.send(JSON.stringify({ id: last, method, params }));
      }),
    close: () => socket.terminate(),
  };
}
