import { type Control, memoryHub, subjects } from '@iris/bus';
import type { TenantId } from '@iris/protocol';
import { silentLog } from '@iris/runtime';
import { expect, test } from '@jest/globals';
import { announcer } from './announce.js';

test('a revocation while the broker is away is told when it is back', async () => {
  const hub = memoryHub({ deliver: ({ run }) => run() });
  const heard: Control[] = [];
  hub.connect().subscribe(subjects.control, (data) => heard.push(JSON.parse(Buffer.from(data).toString()) as Control));
  const bus = hub.connect();
  const { announce, close } = announcer({ bus, log: silentLog });
  const revoked = { kind: 'revoked', tenant_id: 't' as TenantId, token_id: 'tk_1' } as const;
  bus.setConnected(false);
  await announce(revoked);
  expect(heard).toEqual([]);
  bus.setConnected(true);
  expect(heard).toEqual([revoked]);
  close();
  bus.setConnected(false);
  bus.setConnected(true);
  expect(heard).toHaveLength(1);
});
