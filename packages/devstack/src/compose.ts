import { findProgram, run } from './commands.js';
import { freePort, loopback } from './ports.js';

/** A container engine that answers, and the compose file whose services it may run. */
export interface Compose {
  /** Start a service of the file on a free port of the loopback address; resolves with that port when it is healthy. */
  up(service: 'redis' | 'nats' | 's3'): Promise<number>;
  /** Stop and remove everything that {@link up} started; volumes stay. */
  down(): Promise<void>;
}

/**
 * @param project names the containers, so that two starts don't meet
 * @returns undefined when there is no engine, or it does not answer
 */
export async function findCompose(options: { file: string; project: string; program?: string }): Promise<Compose | undefined> {
  const docker = options.program ?? findProgram('docker');
  if (docker === undefined) return undefined;
  if ((await run(docker, ['info', '--format', '{{.ServerVersion}}'])).code !== 0) return undefined;
  // The file asks for it when it is read, whichever service is wanted.
  const unused = 'not-used-by-these-services';
  const asked = {
    IRIS_ADMIN_TOKEN: process.env.IRIS_ADMIN_TOKEN ?? unused,
    IRIS_MEDIA_SECRET: process.env.IRIS_MEDIA_SECRET ?? unused,
  };
  const command = ['compose', '--project-name', options.project, '--file', options.file];
  if ((await run(docker, ['compose', 'version'])).code !== 0) return undefined;
  return {
    async up(service) {
      const port = await freePort();
      const env = { ...process.env, ...asked, [`IRIS_COMPOSE_${service.toUpperCase()}_PORT`]: `${loopback}:${port}` };
      const { code, output } = await run(docker, [...command, 'up', '--detach', '--no-deps', '--wait', service], { env });
      if (code !== 0) throw new Error(`docker compose could not start ${service}: ${output.trim().split('\n').at(-1)}`);
      return port;
    },
    async down() {
      await run(docker, [...command, 'down'], { env: { ...process.env, ...asked } });
    },
  };
}
