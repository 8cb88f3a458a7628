import { expect, test } from '@jest/globals';
import type { Context } from '../context.js';
import { agentCatalog } from './request-frames.js';

test('LNK38: a catalog that stands, its keys in whatever order Postgres keeps them, is neither written nor told again', async () => {
  const written: unknown[] = [];
  const known = { commands: [{ name: '/model', args_hint: '[name]', description: 'Switch' }] };
  const context = {
    directory: { agent: async () => known, changed: async () => {} },
    store: { agents: { setCommands: async (...given: unknown[]) => void written.push(given) } },
  } as unknown as Context;
  const said = (description: string) =>
    agentCatalog(
      {
        tenant_id: 't',
        agent_id: 'a',
        frame: { payload: { commands: [{ name: '/model', description, args_hint: '[name]' }] } },
      } as never,
      context,
    );
  expect(await said('Switch')).toEqual({});
  expect(written).toEqual([]);
  expect(await said('Another')).toMatchObject({ know: expect.any(Function) });
  expect(written).toHaveLength(1);
});
