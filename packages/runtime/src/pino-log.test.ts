import { describe, expect, test } from '@jest/globals';
import { type LogLevel, pinoLog } from './pino-log.js';
import { redactText } from './redact.js';
import { manualClock } from './testing.js';

function logged(level: LogLevel = 'debug') {
  const lines: string[] = [];
  const log = pinoLog({ level, clock: manualClock(), fields: { part: 'edge' }, write: (line) => void lines.push(line) });
  return { log, lines, last: () => JSON.parse(lines.at(-1)!) as Record<string, unknown> };
}

describe('pinoLog', () => {
  test('one JSON object a line, with the fields of its parents', () => {
    const { log, last } = logged();
    log.child({ connection_id: 'c1' }).info('edge.hello', { n: 3 });
    expect(last()).toEqual({
      level: 'info',
      time: '2026-01-01T00:00:00.000Z',
      part: 'edge',
      connection_id: 'c1',
      n: 3,
      event: 'edge.hello',
    });
  });

  test('below the level nothing is written', () => {
    const { log, lines } = logged('warn');
    log.debug('a');
    log.info('b', { n: 1 });
    log.child({}).info('c');
    expect(lines).toEqual([]);
    log.warn('d');
    expect(lines).toHaveLength(1);
  });

  test('tokens and texts are hidden, at any depth, also in children; names are not', () => {
    const { log, last, lines } = logged();
    log.child({ agent_token: 'sesame' }).warn('x', {
      payload: { token: 'sesame', hello: { fcm_token: 'sesame', list: [{ Authorization: 'sesame' }] }, text: 'sesame' },
      map: new Map([['inner', { password: 'sesame' }]]),
      token_id: 'tk_1',
      tokens: 11,
    });
    expect(lines.join()).not.toMatch(/sesame/);
    expect(last()).toMatchObject({ token_id: 'tk_1', tokens: 11 });
  });

  test('our own tokens are hidden wherever they stand in a text, and what they are of is not', () => {
    const { log, last, lines } = logged();
    const secret = 'Zm9vYmFyYmF6-_9vYmFyYmF6Zm9vYmFyYmF6';
    const said = ['device', 'agent', 'admin', 'push'].map((kind) => `iris-${kind}.tenant1.${secret}`);
    log.warn('x', { reason: `refused ${said.join(', ')}`, cause: new Error(said[0]), list: said });
    expect(lines.join()).not.toContain(secret);
    expect(last().reason).toContain('iris-device.tenant1.[hidden]');
  });

  test('errors keep their cause, and lose credentials in URLs', () => {
    const { log, last, lines } = logged();
    log.error('x', { error: new Error('connect redis://user:sesame@h:6379 failed', { cause: new TypeError('Bearer sesame') }) });
    expect(lines.join()).not.toMatch(/sesame/);
    expect(last()).toMatchObject({ error: { name: 'Error', cause: { name: 'TypeError' } } });
  });

  test('what cannot be printed does not throw', () => {
    const { log, last } = logged();
    const loop: Record<string, unknown> = {
      big: 2n ** 70n,
      bytes: new Uint8Array(5),
      none: undefined,
      many: Array.from({ length: 100 }, () => 1),
    };
    loop.self = loop;
    log.info('x', loop);
    expect(last()).toMatchObject({ big: '1180591620717411303424', bytes: '[5 bytes]' });
  });
});

test('redactText', () => {
  expect(redactText('postgres://u:p@host/db and postgres://host/db')).toBe('postgres://u:[hidden]@host/db and postgres://host/db');
  expect(redactText('{"authorization":"Bearer abc.def"}')).toBe('{"authorization":"Bearer [hidden]"}');
});
