import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { Type } from 'typebox';
import { ConfigError, describeConfig, loadConfig, parseSets } from './config.js';

const Schema = Type.Object({
  port: Type.Integer({ default: 8080, minimum: 0, maximum: 65535, description: 'TCP port' }),
  ping_ms: Type.Integer({ default: 5_000, minimum: 1 }),
  ratio: Type.Number({ default: 0.5 }),
  verbose: Type.Boolean({ default: false }),
  level: Type.Enum(['info', 'debug'], { default: 'info' }),
  origins: Type.Array(Type.String(), { default: [] }),
  redis_url: Type.Optional(Type.String()),
  admin_token: Type.Optional(Type.String({ minLength: 8, secret: true })),
});

const faultsOf = (run: () => unknown): readonly string[] => {
  try {
    run();
  } catch (error) {
    if (error instanceof ConfigError) return error.faults;
    throw error;
  }
  throw new Error('no ConfigError');
};

describe('loadConfig', () => {
  test('defaults, then the environment, then --set', () => {
    const env = { IRIS_PORT: '9000', IRIS_PING_MS: '7_000', IRIS_VERBOSE: 'true', IRIS_ORIGINS: 'a.example, b.example', IRIS_LEVEL: '' };
    const config = loadConfig(Schema, { env, set: parseSets(['ping_ms=100', 'level=debug', 'ratio=1e-2']) });
    expect(config).toEqual({
      port: 9000,
      ping_ms: 100,
      ratio: 0.01,
      verbose: true,
      level: 'debug',
      origins: ['a.example', 'b.example'],
    });
    // Typed as its schema says.
    const port: number = config.port;
    const url: string | undefined = config.redis_url;
    expect([port, url]).toEqual([9000, undefined]);
  });

  test('it is frozen, and defaults are not shared', () => {
    const config = loadConfig(Schema, { env: {} });
    expect(Object.isFrozen(config)).toBe(true);
    expect(Object.isFrozen(config.origins)).toBe(true);
    expect(Object.isFrozen((Schema.properties.origins as unknown as { default: string[] }).default)).toBe(false);
  });

  test('every fault is named at once', () => {
    const faults = faultsOf(() =>
      loadConfig(Schema, { env: { IRIS_PORT: '70000', IRIS_PING_MS: '5s' }, set: parseSets(['levle=debug', 'verbose=perhaps']) }),
    );
    expect(faults).toHaveLength(4);
    expect(faults.join('\n')).toMatch(/levle: no such setting/);
    expect(faults.join('\n')).toMatch(/port: .*65535/);
    expect(faults.join('\n')).toMatch(/ping_ms: .*integer/);
    expect(faults.join('\n')).toMatch(/verbose: .*boolean/);
  });

  test('names of other parts are no mistake', () => {
    const other = Type.Object({ outbox_max_frames: Type.Integer({ default: 1 }) });
    const set = parseSets(['outbox_max_frames=50']);
    expect(faultsOf(() => loadConfig(Schema, { env: {}, set }))).toEqual(['outbox_max_frames: no such setting']);
    expect(loadConfig(Schema, { env: {}, set, beside: [other] }).port).toBe(8080);
    expect(loadConfig(other, { env: {}, set, beside: [Schema] })).toEqual({ outbox_max_frames: 50 });
  });

  test('a missing value is named with its variable', () => {
    expect(faultsOf(() => loadConfig(Type.Object({ postgres_url: Type.String() }), { env: {} }))).toEqual([
      'postgres_url: missing (IRIS_POSTGRES_URL)',
    ]);
  });

  test('names that objects inherit are no settings', () => {
    expect(faultsOf(() => loadConfig(Schema, { env: {}, set: parseSets(['constructor=1', '__proto__=2']) }))).toHaveLength(2);
  });

  test('a secret may come from a file, and is never shown', () => {
    const file = join(mkdtempSync(join(tmpdir(), 'iris-config-')), 'token');
    writeFileSync(file, 'long-enough-secret\n');
    expect(loadConfig(Schema, { env: { IRIS_ADMIN_TOKEN_FILE: file } }).admin_token).toBe('long-enough-secret');
    expect(faultsOf(() => loadConfig(Schema, { env: { IRIS_ADMIN_TOKEN_FILE: `${file}.not` } }))).toEqual([
      'admin_token: IRIS_ADMIN_TOKEN_FILE cannot be read (ENOENT)',
    ]);
    expect(faultsOf(() => loadConfig(Schema, { env: { IRIS_ADMIN_TOKEN_FILE: file, IRIS_ADMIN_TOKEN: 'x'.repeat(9) } }))).toHaveLength(1);
    const shown = faultsOf(() => loadConfig(Schema, { env: { IRIS_ADMIN_TOKEN: 's3cret' } })).join();
    expect(shown).toMatch(/admin_token/);
    expect(shown).not.toMatch(/s3cret/);
    // What is no secret does not come from files.
    expect(loadConfig(Schema, { env: { IRIS_REDIS_URL_FILE: file } }).redis_url).toBeUndefined();
  });
});

test('parseSets takes everything behind the first =', () => {
  expect([...parseSets(['URL=redis://h/?a=b', 'x='])]).toEqual([
    ['url', 'redis://h/?a=b'],
    ['x', ''],
  ]);
  expect(faultsOf(() => parseSets(['nothing', '=5']))).toHaveLength(2);
});

test('describeConfig says what can be set', () => {
  const settings = describeConfig(Schema);
  expect(settings.find((one) => one.name === 'port')).toEqual({
    name: 'port',
    env: 'IRIS_PORT',
    description: 'TCP port',
    fallback: '8080',
    secret: false,
  });
  expect(settings.find((one) => one.name === 'admin_token')?.secret).toBe(true);
});
