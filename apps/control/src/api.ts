import swagger from '@fastify/swagger';
import { type ErrorCode, Quotas, RequestError } from '@iris/protocol';
import { gate, type Log, sealing } from '@iris/runtime';
import fastify, { type FastifyError, type FastifyReply } from 'fastify';
import type { TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { actors, checkMay, Refused } from './actor.js';
import { announcer } from './announce.js';
import type { ControlConfig } from './config.js';
import { type Api, type ControlDeps, routing } from './control.js';
import { docsPage } from './docs-page.js';
import { docsSignIn } from './docs-sign-in.js';
import { securityHeaders } from './headers.js';
import { oidcFrom } from './oidc.js';
import { agentRoutes } from './routes/agents.js';
import { archiveRoutes } from './routes/archive.js';
import { channelRoutes } from './routes/channels.js';
import { deviceRoutes } from './routes/devices.js';
import { insightRoutes } from './routes/insight.js';
import { pairingRoutes } from './routes/pairing.js';
import { pushRoutes } from './routes/push.js';
import { serviceRoutes } from './routes/service.js';
import { tenantRoutes } from './routes/tenants.js';
import { tokenRoutes } from './routes/tokens.js';
import { ErrorBody } from './schemas.js';

const statusOf: Readonly<Record<ErrorCode, number>> = {
  auth: 401,
  not_found: 404,
  rate_limited: 429,
  media_too_large: 413,
  unsupported: 400,
  internal: 500,
};

/**
 * The admin API. Everything under `/v1` wants `Authorization: Bearer …`: the bootstrap token, a tenant's administrator's, or one of the OpenID
 * Connect issuer; only `/v1/pair` is asked with a code. `/healthz`, `/readyz`, `/openapi.json` and `/docs` want nothing. Refusals are
 * `{error: {code, message}}` with the six codes of the wire protocol; 403 for who is known and may not.
 */
export async function buildApi(deps: ControlDeps, config: ControlConfig): Promise<Api> {
  const { store, bus, log, clock } = deps;
  const api: Api = fastify({
    bodyLimit: 64 * 1024,
    routerOptions: { maxParamLength: 256 },
    trustProxy: config.trusted_proxies.length > 0 ? [...config.trusted_proxies] : false,
    connectionTimeout: 120_000,
    requestTimeout: 0,
  });
  const announce = announcer({ bus, log });
  api.addHook('onClose', async () => announce.close());
  const oidc = oidcFrom(config, { clock, log });
  const known = actors({ store, clock, admin_token: config.admin_token, oidc });
  securityHeaders(api);

  // Checked by the compiled schemas: nothing is converted, filled in or taken away.
  api.setValidatorCompiler<TSchema>(({ schema, httpPart }) => {
    const validator = Compile(schema);
    return (value: unknown) => {
      if (validator.Check(value)) return { value };
      const [fault] = validator.Errors(value);
      const field = fault === undefined || fault.instancePath === '' ? httpPart : fault.instancePath.slice(1).replaceAll('/', '.');
      return { error: new RequestError('unsupported', `${field}: ${fault?.message ?? 'wrong'}`) };
    };
  });
  // An empty body stands for none, so that a DELETE with a content type is no mistake.
  api.removeContentTypeParser('application/json');
  api.addContentTypeParser<string>('application/json', { parseAs: 'string' }, (_request, body, done) => {
    if (body === '') return done(null, undefined);
    try {
      done(null, JSON.parse(body));
    } catch {
      done(new RequestError('unsupported', 'body: not JSON'), undefined);
    }
  });
  api.setErrorHandler((error: FastifyError | RequestError, _request, reply) => refuse(reply, error, log));
  api.setNotFoundHandler((_request, reply) => refuse(reply, new RequestError('not_found', 'route unknown'), log));

  await api.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'Iris Gateway admin API', version: '1' },
      components: { securitySchemes: { admin: { type: 'http', scheme: 'bearer' } } },
      security: [{ admin: [] }],
    },
  });
  api.addHook('onRoute', (route) => {
    if (!route.url.startsWith('/v1/')) return;
    // Nothing is open because nobody thought of it.
    if (route.config?.needs === undefined) throw new Error(`${route.url} does not say who may ask`);
    const response = (route.schema?.response ?? {}) as Record<string, TSchema>;
    route.schema = { ...route.schema, response: { ...response, '4xx': ErrorBody, '5xx': ErrorBody } };
  });
  api.decorateRequest('actor');
  api.addHook('onRequest', async (request) => {
    const { needs } = request.routeOptions.config;
    if (needs === 'nobody' || !/^\/v1(\/|$|\?)/.test(request.url)) return;
    request.actor = await known.of(request.headers.authorization, request.ip);
    if (needs !== undefined) checkMay(request.actor, needs);
  });

  const hidden = { schema: { hide: true } };
  api.get('/healthz', hidden, async (_request, reply) => reply.type('text/plain').send('ok\n'));
  api.get('/readyz', hidden, async (_request, reply) => {
    const checks = { store: await store.ready().catch(() => false), bus: bus.connected };
    const ready = checks.store && checks.bus;
    return reply.code(ready ? 200 : 503).send({ ready, checks });
  });
  api.get('/openapi.json', hidden, async (_request, reply) => reply.send(api.swagger()));
  docsPage(api);
  docsSignIn(api, oidc);

  const quotas = Object.fromEntries(Object.keys(Quotas.properties).map((name) => [name, config[name as keyof Quotas]])) as Quotas;
  const routes = routing(deps, {
    quotas,
    announcer: announce,
    actors: known,
    public_url: config.public_url,
    seal: config.sealing_secret.length === 0 ? undefined : sealing(config.sealing_secret, deps.random),
    gate: gate({ private_addresses: config.private_addresses, hosts: config.allow_hosts, addresses: config.allow_addresses }),
  });
  const all = [
    tenantRoutes,
    tokenRoutes,
    pairingRoutes,
    deviceRoutes,
    pushRoutes,
    agentRoutes,
    channelRoutes,
    insightRoutes,
    archiveRoutes,
    serviceRoutes,
  ];
  for (const add of all) add(api, routes);
  await api.ready();
  return api;
}

/** The only catch: what nobody expected is `internal`, and its cause goes to the log alone. */
function refuse(reply: FastifyReply, error: FastifyError | RequestError, log: Log): FastifyReply {
  if (error instanceof RequestError) return answer(reply, error.code, error.message, error);
  const status = error.statusCode ?? 500;
  if (status === 413) return reply.code(413).send({ error: { code: 'unsupported', message: 'body: too large' } });
  if (status >= 400 && status < 500) return answer(reply, 'unsupported', error.message);
  log.error('control.failed', { error });
  return answer(reply, 'internal', 'internal error');
}

function answer(reply: FastifyReply, code: ErrorCode, message: string, error?: RequestError): FastifyReply {
  const retry_after_ms = error?.retry_after_ms;
  if (retry_after_ms !== undefined) reply.header('retry-after', String(Math.ceil(retry_after_ms / 1_000)));
  return reply
    .code(error instanceof Refused ? 403 : statusOf[code])
    .send({ error: { code, message, ...(retry_after_ms === undefined ? {} : { retry_after_ms }) } });
}
