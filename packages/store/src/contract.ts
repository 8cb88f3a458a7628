import { afterAll, beforeAll, describe, jest } from '@jest/globals';
import { agentFrames } from './contract/agent-frames.js';
import { agents } from './contract/agents.js';
import { channels } from './contract/channels.js';
import type { StoreClients, Subject } from './contract/clients.js';
import { devices } from './contract/devices.js';
import { keys } from './contract/keys.js';
import { mediaRows } from './contract/media-rows.js';
import { deletion } from './contract/message-deletion.js';
import { insertion } from './contract/message-insertion.js';
import { paging } from './contract/message-paging.js';
import { search } from './contract/message-search.js';
import { pickers } from './contract/pickers.js';
import { pushes } from './contract/push.js';
import { readsAndReceipts } from './contract/reads.js';
import { tenants } from './contract/tenants.js';
import { tokens } from './contract/tokens.js';
import { turns } from './contract/turns.js';

export type { StoreClients } from './contract/clients.js';

/** What every store does, sentence by sentence of store.ts. `open` is called once; tests are kept apart by tenants. */
export function describeStore(name: string, open: () => Promise<StoreClients>): void {
  describe(name, () => {
    jest.setTimeout(30_000);
    let clients: StoreClients | undefined;
    const subject: Subject = () => {
      if (!clients) throw new Error('the store is not open');
      return clients;
    };
    beforeAll(async () => {
      clients = await open();
    }, 120_000);
    afterAll(async () => {
      await clients?.close();
    }, 30_000);
    for (const area of [tenants, tokens, devices, channels, insertion, deletion, paging, search]) area(subject);
    for (const area of [turns, agents, agentFrames, pickers, readsAndReceipts, mediaRows, pushes, keys]) area(subject);
  });
}
