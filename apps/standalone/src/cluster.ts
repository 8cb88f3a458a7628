import { fileURLToPath } from 'node:url';
import { loopback, type Part, planServices, startNodePart } from '@iris/devstack';
import { migrate } from '@iris/store';
import { Type } from 'typebox';
import { agentOf } from './options.js';
import { places } from './places.js';
import type { Start, System } from './system.js';

const composeFile = fileURLToPath(new URL('../../../docker-compose.yml', import.meta.url));
const main = (app: string): string => fileURLToPath(new URL(`../../${app}/dist/main.js`, import.meta.url));
const here = (file: string): string => fileURLToPath(new URL(`./${file}`, import.meta.url));
const tenantsFile = 'attached.json';

const names = ['postgres', 'redis', 'nats', 's3'] as const;
const address = (description: string) => Type.Optional(Type.String({ secret: true, description }));
/** Services that the operator runs; the same names configure every part. */
const ServiceAddresses = Type.Object({
  postgres_url: address('postgresql://user:password@host:port/database'),
  redis_url: address('redis://host:port'),
  nats_url: address('nats://host:port'),
  s3_url: address('http://access:secret@host:port/bucket?region=us-east-1'),
});

/** Several processes on real services, each started again when it dies. */
export async function startCluster(start: Start): Promise<System> {
  const { life, options, settings, folder, say } = start;
  const place = await places(options);
  const addresses = settings.of(ServiceAddresses);
  const given = new Map(
    names.flatMap((name) => {
      const url = addresses[`${name}_url`];
      return url === undefined ? [] : [[name, url] as const];
    }),
  );
  const plan = await life.start(
    'services',
    () => planServices({ folder, names, given, install: options.install, compose_file: composeFile, say }),
    (one) => one.close(),
  );
  for (const note of plan.notes) say(`  ${note}`);
  const supervisor = await start.supervise();
  await supervisor.start(...plan.parts);
  const postgres_url = plan.urls.get('postgres')!;
  await life.start('migrations', () => migrate(postgres_url, start.log));

  const s3 = plan.urls.get('s3');
  const common = {
    // Someone waits for the end: with few sockets there is little to spread out.
    IRIS_MEDIA_SECRET: folder.secret('media_secret'),
    IRIS_SEALING_SECRET: folder.secret('sealing_secret'),
    IRIS_DRAIN_MS: '2000',
    IRIS_FINISH_MS: '3000',
    ...settings.env,
    IRIS_POSTGRES_URL: postgres_url,
    IRIS_REDIS_URL: plan.urls.get('redis')!,
    IRIS_NATS_URL: plan.urls.get('nats')!,
    ...(s3 === undefined ? { IRIS_MEDIA_DIR: folder.path('media'), IRIS_S3_URL: '' } : { IRIS_S3_URL: s3 }),
  };
  const metrics: string[] = [];
  const part = async (
    name: string,
    index: number,
    program: string,
    env: Readonly<Record<string, string>>,
    port?: number,
  ): Promise<Part> => {
    const health = await place.health();
    metrics.push(`http://${loopback}:${health}/metrics`);
    return {
      part: name,
      index,
      start: () =>
        startNodePart({
          name: `${name}-${index}`,
          main: program,
          env: { ...common, ...env, IRIS_HEALTH_PORT: String(health) },
          port: port ?? health,
          ready: { port: health, path: '/readyz' },
          run_dir: folder.run_dir,
        }),
    };
  };
  const several = (count: number, make: (index: number) => Promise<Part>) =>
    Promise.all(Array.from({ length: count }, (_, index) => make(index)));

  say(`starting ${options.sessions} sessions, ${options.workers} workers, ${options.edges} edges, control${options.web ? ', web' : ''}`);
  const sessions = await several(options.sessions, (index) => part('session', index, main('session'), {}));
  const workers = await several(options.workers, (index) => part('worker', index, main('worker'), {}));
  const control = await part(
    'control',
    0,
    main('control'),
    { IRIS_CONTROL_PORT: String(place.control), IRIS_ADMIN_TOKEN: start.admin_token },
    place.control,
  );
  await supervisor.start(...sessions, ...workers, control);
  // An edge is ready when a session instance is there.
  const origins = [loopback, 'localhost'].map((host) => `http://${host}:${place.web}`).join(',');
  const edges = await several(options.edges, (index) => {
    const port = place.edges[index]!;
    return part('edge', index, main('edge'), { IRIS_EDGE_PORT: String(port), IRIS_EDGE_ORIGINS: origins }, port);
  });
  const web = options.web ? [await part('web', 0, here('web-main.js'), { IRIS_WEB_PORT: String(place.web) }, place.web)] : [];
  await supervisor.start(...edges, ...web);

  const agent_url = `ws://${loopback}:${place.edges[0]}/agent`;
  return {
    edges: place.edges.map((port) => `ws://${loopback}:${port}/ws`),
    agent_url,
    control_url: `http://${loopback}:${place.control}`,
    ...(options.web ? { page_url: `http://${loopback}:${place.web}/` } : {}),
    metrics,
    services: { ...Object.fromEntries(plan.urls), ...(s3 === undefined ? { s3: `file://${folder.path('media')}` } : {}) },
    here: [],
    async attach(tenants) {
      folder.write(tenantsFile, tenants);
      const { backend, url, key } = agentOf(options);
      const env = {
        IRIS_GATEWAY_URL: agent_url,
        IRIS_TENANTS_FILE: folder.path(tenantsFile),
        IRIS_SPOOL_DIR: folder.path('spool'),
        IRIS_AGENT_BACKEND: backend,
        ...(url === undefined ? {} : { IRIS_AGENT_URL: url }),
        ...(key === undefined ? {} : { IRIS_AGENT_KEY: key }),
      };
      await supervisor.start(await part('agent', 0, here('agents-main.js'), env));
    },
  };
}
