import { join } from 'node:path';
import { type Supervisor, supervise, takeDataFolder } from '@iris/devstack';
import { type Clock, ConfigError, type Lifecycle, type Log, pinoLog, runProcess, systemClock } from '@iris/runtime';
import { webLink } from '@iris/web';
import { startCluster } from './cluster.js';
import { devJson } from './dev-json.js';
import { logFile } from './log-file.js';
import { OptionError, type Options } from './options.js';
import { type Settings, StandaloneConfig, settings } from './settings.js';
import { calmSignals } from './signals.js';
import { startSingle } from './single.js';
import { demoTenants } from './tenants.js';

const say = (line: string): void => void process.stdout.write(`${line}\n`);
const complain = (line: string): void => void process.stderr.write(`${line}\n`);
/** Everything, with a database that has much to write. */
const stop_ms = 45_000;

/** `npm start`, from the options to the end of the process. */
export async function run(options: Options, clock: Clock = systemClock): Promise<void> {
  let checked: Settings;
  try {
    checked = settings(options.set);
  } catch (error) {
    throw error instanceof ConfigError ? new OptionError(error.message) : error;
  }
  const file = logFile({ complain });
  const log = pinoLog({ level: checked.of(StandaloneConfig).log_level, clock, write: file.write });
  const calm = calmSignals(process, clock);
  let asked = false;
  const events: typeof calm = {
    on: (event, listener) =>
      calm.on(event, (value) => {
        if (event === 'SIGINT' || event === 'SIGTERM') {
          asked = true;
          say('\nstopping …');
        }
        listener(value);
      }),
    exit(code) {
      if (code === 0) say('stopped');
      calm.exit(code);
    },
  };
  await runProcess({ log, clock, stop_ms, events }, async (life) => {
    try {
      await bringUp({ life, options, settings: checked, clock, log, openLog: file.open });
    } catch (error) {
      // A start that was cut short by a signal has failed for no reason worth telling.
      if (!asked) complain(told(error));
      throw error;
    }
  });
}

async function bringUp(start: {
  life: Lifecycle;
  options: Options;
  settings: Settings;
  clock: Clock;
  log: Log;
  openLog(path: string): void;
}): Promise<void> {
  const { life, options } = start;
  const begun = start.clock.now();
  const folder = await life.start(
    'data folder',
    () => takeDataFolder({ dir: options.data, fresh: options.fresh, say }),
    (one) => one.release(),
  );
  start.openLog(join(folder.run_dir, 'iris.log'));
  const admin_token = folder.secret('admin_token');

  let supervisor: Supervisor | undefined;
  const dev = devJson(folder, () => [...system.here, ...(supervisor?.list() ?? [])]);
  const startSystem = options.cluster ? startCluster : startSingle;
  const system = await startSystem({
    ...start,
    folder,
    admin_token,
    say: (line) => say(`· ${line}`),
    async supervise() {
      supervisor = await life.start(
        'processes',
        () => supervise({ restart: options.restart, say: (line) => say(`! ${line}`), changed: dev.refresh }),
        (one) => one.stop(),
      );
      return supervisor;
    },
  });

  const { control_url } = system;
  const tenants = await demoTenants({ folder, control_url, admin_token, count: options.tenants });
  const [first] = tenants;
  if (options.agent !== 'none') await system.attach(tenants);
  const web_url = system.page_url === undefined ? undefined : webLink(system.page_url, system.edges[0]!, first.device_token);
  await life.start(
    'dev.json',
    () =>
      dev.publish({
        edges: system.edges,
        agent_url: system.agent_url,
        control_url,
        ...(web_url === undefined ? {} : { web_url }),
        metrics: system.metrics,
        admin_token,
        ...first,
        tenants,
        services: system.services,
      }),
    () => dev.remove(),
  );

  const seconds = ((start.clock.now() - begun) / 1_000).toFixed(1);
  const lines = [
    '',
    `ready in ${seconds} s`,
    '',
    ...system.edges.map((edge) => `  devices   ${edge}`),
    `  agents    ${system.agent_url}`,
    `  control   ${control_url}/v1   (token in ${folder.path('dev.json')})`,
    ...(web_url === undefined ? [] : ['', `  open      ${web_url}`]),
    '',
    'Ctrl-C stops everything; data stay.',
  ];
  say(lines.join('\n'));
}

/** For the person who started it: why, without where in the code. */
const told = (error: unknown): string => (error instanceof Error ? error.message : String(error));
