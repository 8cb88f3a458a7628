import { type Clock, type Log, silentLog, systemClock } from '@iris/runtime';
import type { Store } from '../store.js';
import { prismaAgentFrames } from './agent-frames.js';
import { prismaAgents } from './agents.js';
import { prismaAudit } from './audit.js';
import { prismaChannels } from './channels.js';
import { connections } from './connections.js';
import { type Database, prismaClient } from './database.js';
import { prismaDevices } from './devices.js';
import { prismaMediaRows } from './media-rows.js';
import { prismaMessages } from './messages.js';
import { prismaPickers } from './pickers.js';
import { prismaReads } from './reads.js';
import { prismaReceipts } from './receipts.js';
import { prismaTenants } from './tenants.js';
import { prismaTokens } from './tokens.js';
import { prismaTurns } from './turns.js';

export interface PrismaStoreOptions {
  /** `postgresql://user:password@host:port/database`; migrated already. */
  readonly url: string;
  readonly clock?: Clock;
  /** Connections at most. */
  readonly poolSize?: number;
  readonly log?: Log;
}

const writable = `SELECT NOT pg_is_in_recovery() AND current_setting('transaction_read_only') = 'off' AS yes`;

/**
 * The store in Postgres. Connects when it is first asked. A call fails within about 5 s when the server is silent; when it comes
 * back, or another takes its address, the next calls connect anew.
 */
export function prismaStore({ url, clock = systemClock, poolSize = 10, log = silentLog }: PrismaStoreOptions): Store {
  const sql = connections({ url, poolSize, clock, log });
  const database: Database = { sql, prisma: prismaClient(sql), clock };
  return {
    tenants: prismaTenants(database),
    tokens: prismaTokens(database),
    devices: prismaDevices(database),
    channels: prismaChannels(database),
    messages: prismaMessages(database),
    turns: prismaTurns(database),
    agents: prismaAgents(database),
    agentFrames: prismaAgentFrames(database),
    pickers: prismaPickers(database),
    reads: prismaReads(database),
    receipts: prismaReceipts(database),
    media: prismaMediaRows(database),
    audit: prismaAudit(database),
    async ready() {
      try {
        const [answer] = await sql.rows<{ yes: boolean }>(writable);
        // A server that was demoted goes on answering; a new connection may lead to the one that took its place.
        if (answer?.yes !== true) sql.discardIdle();
        return answer?.yes === true;
      } catch {
        return false;
      }
    },
    async close() {
      await database.prisma.$disconnect();
      await sql.close();
    },
  };
}
