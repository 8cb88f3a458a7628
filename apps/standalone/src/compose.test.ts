/** The compose file cannot be run everywhere; what it names can be checked everywhere. */
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { ControlProcessConfig } from '@iris/control';
import { EdgeProcessConfig } from '@iris/edge';
import { describeConfig, loadConfig } from '@iris/runtime';
import { SessionProcessConfig } from '@iris/session';
import { WorkerProcessConfig } from '@iris/worker';
import { expect, test } from '@jest/globals';
import type { TObject } from 'typebox';
import { parse } from 'yaml';
import { AgentsProcessConfig } from './agents-config.js';
import { WebProcessConfig } from './web-config.js';

interface Service {
  readonly image: string;
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly depends_on?: Readonly<Record<string, unknown>>;
  readonly healthcheck?: unknown;
}

const root = new URL('../../../', import.meta.url);
const text = (path: string) => readFileSync(new URL(path, root), 'utf8');
const compose = parse(text('docker-compose.yml'), { merge: true }) as {
  readonly services: Readonly<Record<string, Service>>;
  readonly volumes: Readonly<Record<string, unknown>>;
};
const schemas: Readonly<Record<string, TObject>> = {
  edge: EdgeProcessConfig,
  session: SessionProcessConfig,
  worker: WorkerProcessConfig,
  control: ControlProcessConfig,
  web: WebProcessConfig,
  agent: AgentsProcessConfig,
};
const ours = Object.entries(compose.services).filter(([, { image }]) => image === 'iris-gateway');
/** As compose fills in what the environment of the one who calls it may say. */
const filled = (value: string) =>
  value.replaceAll(/\$\{(\w+)(?::-([^}]*)|:\?[^}]*)\}/g, (_, name, fallback) => fallback ?? `value-of-${name}-0123456789`);

test('the whole cluster is there: services, every part, two edges and two session instances', () => {
  expect(Object.keys(compose.services).sort()).toEqual([
    'agent',
    'control',
    'edge',
    'nats',
    'postgres',
    'redis',
    's3',
    'session',
    'web',
    'worker',
  ]);
  expect(ours.map(([name]) => name).sort()).toEqual(Object.keys(schemas).sort());
  for (const part of ['edge', 'session']) expect(compose.services[part]).toMatchObject({ deploy: { replicas: 2 } });
  for (const [name, service] of Object.entries(compose.services)) expect([name, service.healthcheck]).toEqual([name, expect.anything()]);
});

test.each(ours)('%s runs a program that the build makes', (_, { command = [] }) => {
  const [program = ''] = command;
  expect(program).toMatch(/^apps\/[a-z]+\/dist\/[a-z-]+\.js$/);
  const source = program.replace('/dist/', '/src/').replace(/\.js$/, '.ts');
  expect([source, existsSync(new URL(source, root))]).toEqual([source, true]);
});

test.each(ours)(
  '%s gets only settings that exist, with values that are right, and every one that it needs',
  (name, { environment = {} }) => {
    const known = new Set(Object.values(schemas).flatMap((schema) => describeConfig(schema).map(({ env }) => env)));
    for (const variable of Object.keys(environment)) expect(known).toContain(variable);
    const env = Object.fromEntries(Object.entries(environment).map(([variable, value]) => [variable, filled(String(value))]));
    expect(() => loadConfig(schemas[name]!, { env })).not.toThrow();
  },
);

test('what is waited for, mounted and kept is there, and services that hold data are not open to the world', () => {
  for (const [name, { depends_on = {}, volumes = [], ports = [] }] of Object.entries(compose.services)) {
    for (const other of Object.keys(depends_on)) expect(Object.keys(compose.services)).toContain(other);
    for (const volume of volumes) {
      const [from = ''] = volume.split(':');
      if (from.startsWith('.')) expect([from, existsSync(fileURLToPath(new URL(from, root)))]).toEqual([from, true]);
      else expect(Object.keys(compose.volumes)).toContain(from);
    }
    if (['postgres', 'redis', 'nats', 's3', 'control'].includes(name))
      for (const port of ports) expect(filled(port)).toMatch(/^127\.0\.0\.1:\d+:\d+$/);
  }
});

test('the addresses agree with what listens there', () => {
  const environment = compose.services.session!.environment!;
  const hosts = ['IRIS_POSTGRES_URL', 'IRIS_REDIS_URL', 'IRIS_NATS_URL'].map((name) => new URL(filled(environment[name]!)));
  for (const { hostname } of hosts) expect(Object.keys(compose.services)).toContain(hostname);
  const postgres = hosts[0]!;
  const server = compose.services.postgres!.environment!;
  expect([postgres.username, postgres.password, postgres.pathname.slice(1)]).toEqual([
    server.POSTGRES_USER,
    filled(server.POSTGRES_PASSWORD!),
    server.POSTGRES_DB,
  ]);
});

test('the image runs a Node that we support, as a user who is nobody in particular', () => {
  const image = text('infra/images/Dockerfile');
  const { engines } = JSON.parse(text('package.json')) as { engines: { node: string } };
  for (const [, major] of image.matchAll(/^FROM node:(\d+)/gm))
    expect(Number(major)).toBeGreaterThanOrEqual(Number.parseInt(engines.node.replace('>=', ''), 10));
  expect(image).toMatch(/^USER node$/m);
  for (const [, path] of image.matchAll(/^COPY (?!--from|\. \.)(\S+)/gm)) expect(existsSync(new URL(path!, root))).toBe(true);
});
