import { AgentConfig } from '@iris/agent';
import { memoryHub } from '@iris/bus';
import { buildApi, ControlConfig } from '@iris/control';
import { loopback, planServices } from '@iris/devstack';
import { createEdge, EdgeConfig, startUwsServer } from '@iris/edge';
import { memoryJobs } from '@iris/jobs';
import { filesystemMedia } from '@iris/media';
import { memoryOutbox } from '@iris/outbox';
import type { ConnectionId, EdgeId, SessionId } from '@iris/protocol';
import { makeIds, measureProcess, sealing, serveHealth, systemRandom, telemetry } from '@iris/runtime';
import { createSession, SessionConfig } from '@iris/session';
import { migrate, postgresArchive, prismaStore } from '@iris/store';
import { startWeb } from '@iris/web';
import { cinemaLimits, createWorker, findCinema, processStudio, studioLimits, WorkerConfig } from '@iris/worker';
import { startAgents } from './agents.js';
import { agentOf } from './options.js';
import { places } from './places.js';
import type { Start, System } from './system.js';

/** Everything in this process: memory bus, outbox and jobs, files on disk, and a Postgres of its own. */
export async function startSingle(start: Start): Promise<System> {
  const { life, options, settings, folder, clock, log, say } = start;
  const random = systemRandom;
  const ids = makeIds({ clock, random });
  const place = await places(options);

  const supervisor = await start.supervise();
  say('starting Postgres');
  const plan = await planServices({ folder, names: ['postgres'], given: new Map(), install: false, postgres: 'embedded', say });
  await supervisor.start(...plan.parts);
  const postgres_url = plan.urls.get('postgres')!;
  await life.start('migrations', () => migrate(postgres_url, log));

  say('starting the gateway');
  const measured = await life.start(
    'telemetry',
    () => telemetry({ service: 'standalone', instance: 'standalone' }),
    (one) => one.close(),
  );
  const { meter } = measured;
  await life.start(
    'measures',
    () => measureProcess({ meter, clock }),
    (end) => end(),
  );
  const health_port = await place.health();
  const health = await life.start(
    'health',
    () => serveHealth({ host: loopback, port: health_port, clock, metrics: () => measured.scrape() }),
    (one) => one.close(),
  );

  const hub = memoryHub({ clock });
  const outbox = await life.start(
    'outbox',
    () => memoryOutbox({ clock }),
    (one) => one.close(),
  );
  const jobs = await life.start(
    'jobs',
    () => memoryJobs({ clock, log }),
    (one) => one.close(),
  );
  const media = await life.start(
    'media',
    () => filesystemMedia({ folder: folder.path('media'), clock }),
    (one) => one.close(),
  );
  const store = await life.start(
    'store',
    () => prismaStore({ url: postgres_url, clock, log }),
    (one) => one.close(),
  );

  const archive = await life.start(
    'archive',
    () => postgresArchive({ url: postgres_url, clock, log }),
    (one) => one.close(),
  );

  const session = await life.start(
    'session',
    async () => {
      const session_id = `session-${ids.random(10)}` as SessionId;
      const one = createSession(
        { bus: hub.connect('session'), outbox, store, jobs, clock, log, meter, random, session_id },
        settings.of(SessionConfig),
      );
      await one.start();
      return one;
    },
    (one) => one.stop({ within_ms: 3_000 }),
  );
  await life.start(
    'worker',
    async () => {
      const config = settings.of(WorkerConfig);
      const studio = processStudio({ clock, log, limits: studioLimits(config), seats: config.media_at_once });
      const cinema = await findCinema({ clock, log, limits: cinemaLimits(config) });
      const seeing = cinema === undefined ? { media, studio } : { media, studio, cinema };
      const one = createWorker({ bus: hub.connect('worker'), outbox, store, ...seeing, jobs, clock, random, log, meter }, config);
      await one.start();
      return one;
    },
    (one) => one.stop(),
  );
  const given = settings.of(ControlConfig, new Map([['admin_token', start.admin_token]]));
  const control = { ...given, sealing_secret: given.sealing_secret.length > 0 ? given.sealing_secret : [folder.secret('sealing_secret')] };
  const api = await life.start(
    'control',
    () => buildApi({ store, bus: hub.connect('control'), clock, random, log, outbox, media, archive }, control),
    (one) => one.close(),
  );
  await api.listen({ host: loopback, port: place.control });

  const port = place.edges[0]!;
  const edge = await life.start(
    'edge',
    async () => {
      const origins = [loopback, 'localhost'].map((host) => `http://${host}:${place.web}`);
      const server = await startUwsServer(
        { host: loopback, port, origins, clock, answerPush: (body, address) => made.answerPush(body, address) },
        (socket, opening) => made.accept(socket, opening),
        (exchange) => made.file(exchange),
      );
      const made = createEdge(
        {
          bus: hub.connect('edge'),
          outbox,
          media,
          clock,
          log,
          meter,
          random,
          edge_id: `edge-${ids.random(10)}` as EdgeId,
          groups: server.groups,
          newConnectionId: () => ids.sortable() as ConnectionId,
        },
        { media_secret: ids.random(32), ...settings.of(EdgeConfig) },
      );
      await made.start();
      return { made, server };
    },
    async ({ made, server }) => {
      server.stopListening();
      await made.drain({ within_ms: 300 });
      await made.stop();
      server.close();
    },
  );
  if (options.web)
    await life.start(
      'web',
      () => startWeb({ host: loopback, port: place.web }),
      (one) => one.close(),
    );

  health.check('store', () => store.ready());
  health.check('session', () => session.ready());
  health.check('edge', () => edge.made.ready());
  health.setReady(true);

  const agent_url = `ws://${loopback}:${port}/agent`;
  const here = (part: string, at: number) => ({ part, index: 0, pid: process.pid, port: at });
  return {
    edges: [`ws://${loopback}:${port}/ws`],
    agent_url,
    control_url: `http://${loopback}:${place.control}`,
    ...(options.web ? { page_url: `http://${loopback}:${place.web}/` } : {}),
    metrics: [`http://${loopback}:${health_port}/metrics`],
    services: { postgres: postgres_url, s3: `file://${folder.path('media')}` },
    here: [
      here('edge', port),
      here('session', port),
      here('worker', port),
      here('control', place.control),
      ...(options.web ? [here('web', place.web)] : []),
    ],
    async attach(tenants) {
      const model = settings.of(
        AgentConfig,
        new Map([
          ['gateway_url', agent_url],
          ['agent_token', 'given below'],
        ]),
      );
      const agents = await life.start(
        'agents',
        () =>
          startAgents({
            gateway: agent_url,
            spool_dir: folder.path('spool'),
            store,
            bus: hub.connect('agents'),
            seal: sealing(control.sealing_secret, random),
            own: agentOf(options),
            // Where the operator's own is, is the operator's matter.
            model: { ...model, private_addresses: true, allow_hosts: [], allow_addresses: [] },
            reach: control,
            pace_ms: model.pace_ms,
            clock,
            log,
          }),
        (one) => one.stop(),
      );
      await agents.attach(tenants);
    },
  };
}
