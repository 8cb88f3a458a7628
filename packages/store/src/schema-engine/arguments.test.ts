import { expect, test } from '@jest/globals';
import { engineCall } from './arguments.js';

const url = 'postgresql://u:p@h/db';
const datasource = JSON.stringify({ url });

test('what the command line asks for', () => {
  expect(engineCall(['--version'], {})).toEqual({ kind: 'version' });
  expect(engineCall(['--datasource', datasource], {})).toEqual({ kind: 'serve', url });
  expect(engineCall(['--datasource', datasource, 'cli', 'can-connect-to-database'], {})).toEqual({ kind: 'can_connect', url });
  expect(engineCall(['--datasource', datasource, 'cli', 'create-database'], {})).toEqual({ kind: 'create_database', url });
  expect(engineCall(['--datasource', datasource, 'cli', 'drop-database'], {})).toEqual({ kind: 'drop_database', url });
});

test('the address also comes in base64, or from the environment', () => {
  expect(engineCall(['--datasource', Buffer.from(datasource).toString('base64')], {})).toEqual({ kind: 'serve', url });
  expect(engineCall([], { DATABASE_URL: url })).toEqual({ kind: 'serve', url });
  expect(() => engineCall([], {})).toThrow('DATABASE_URL');
});
