import { natsBus } from '@iris/bus';
import { openMedia } from '@iris/media';
import { redisOutbox } from '@iris/outbox';
import type { ConnectionId, EdgeId } from '@iris/protocol';
import { loadConfig, runPart } from '@iris/runtime';
import { createEdge } from './edge.js';
import { EdgeProcessConfig } from './process-config.js';
import { startUwsServer } from './uws-server.js';

const config = loadConfig(EdgeProcessConfig);

await runPart('edge', config, async ({ instance, life, health, clock, random, ids, log, meter }) => {
  const bus = await life.start(
    'bus',
    () => natsBus({ servers: config.nats_url, name: instance, clock, random, log, meter }),
    (one) => one.close(),
  );
  const outbox = await life.start(
    'outbox',
    () => redisOutbox({ url: config.redis_url, name: instance, clock, random, log }),
    (one) => one.close(),
  );
  const media = await life.start(
    'media',
    () => openMedia(config),
    (one) => one.close(),
  );
  const { edge } = await life.start(
    'edge',
    async () => {
      const { edge_host: host, edge_port: port, edge_origins, trusted_proxies, proxy_protocol, tls_cert_file, tls_key_file } = config;
      const tls = tls_cert_file && tls_key_file ? { tls: { cert_file: tls_cert_file, key_file: tls_key_file } } : {};
      const origins = edge_origins.length > 0 ? edge_origins : ('same-host' as const);
      const server = await startUwsServer(
        {
          host,
          port,
          origins,
          trusted_proxies,
          proxy_protocol,
          clock,
          ...tls,
          answerPush: (body, address) => edge.answerPush(body, address),
        },
        (socket, opening) => edge.accept(socket, opening),
        (exchange) => edge.file(exchange),
      );
      const newConnectionId = () => ids.sortable() as ConnectionId;
      const edge = createEdge(
        { bus, outbox, media, clock, log, meter, random, edge_id: instance as EdgeId, groups: server.groups, newConnectionId },
        config,
      );
      await edge.start();
      return { edge, server };
    },
    async ({ edge, server }) => {
      // New sockets go elsewhere, the old ones are closed spread out, and what they were owed is answered before.
      server.stopListening();
      await edge.drain({ within_ms: config.drain_ms });
      await edge.stop();
      server.close();
    },
  );
  health.check('edge', () => edge.ready());
  health.check('outbox', () => outbox.connected);
});
