import { type Clock, type Log, silentLog, systemClock } from '@iris/runtime';
import type { Store } from '../store.js';
import { prismaAgentBackends } from './agent-backends.js';
import { prismaAgentFrames } from './agent-frames.js';
import { prismaAgents } from './agents.js';
import { prismaAudit } from './audit.js';
import { prismaChannels } from './channels.js';
import { connections } from './connections.js';
import { type Database, prismaClient } from './database.js';
import { prismaDevices } from './devices.js';
import { prismaKeys } from './keys.js';
import { prismaMediaRows } from './media-rows.js';
import { prismaMessages } from './messages.js';
import { prismaPairings } from './pairings.js';
import { prismaPickers } from './pickers.js';
import { prismaPushActions, prismaPushFrames, prismaPushOwed, prismaPushRules, prismaPushStale, prismaPushTargets } from './push.js';
import { prismaPushLedger } from './push-ledger.js';
import { prismaReads } from './reads.js';
import { prismaReceipts } from './receipts.js';
import { prismaTenants } from './tenants.js';
import { prismaTokens } from './tokens.js';
import { prismaTurns } from './turns.js';
import { prismaUsage } from './usage.js';

export interface PrismaStoreOptions {
  /** `postgresql://user:password@host:port/database`; migrated already. */
  readonly url: string;
  readonly clock?: Clock;
  /** Connections at most; and a quarter as many for searches. */
  readonly poolSize?: number;
  readonly log?: Log;
}

const writable = `SELECT NOT pg_is_in_recovery() AND current_setting('transaction_read_only') = 'off' AS yes`;

/**
 * A search is planned for its own words each time: by a plan for any words, common ones take hundreds of times longer. And reading a
 * whole table would be reading other tenants' messages, however small the table is. To look into a text costs more than comparing two
 * numbers, so the index is worth asking also when it seems to say little.
 */
const forSearch = ['plan_cache_mode=force_custom_plan', 'enable_seqscan=off', 'jit=off', 'cpu_operator_cost=0.1'];

/**
 * The store in Postgres. Connects when it is first asked. A call fails within about 5 s when the server is silent; when it comes
 * back, or another takes its address, the next calls connect anew.
 */
export function prismaStore({ url, clock = systemClock, poolSize = 10, log = silentLog }: PrismaStoreOptions): Store {
  const sql = connections({ url, poolSize, clock, log });
  const searching = connections({ url, poolSize: Math.max(2, Math.ceil(poolSize / 4)), clock, log, settings: forSearch });
  const database: Database = { sql, searching, prisma: prismaClient(sql), clock };
  return {
    tenants: prismaTenants(database),
    tokens: prismaTokens(database),
    pairings: prismaPairings(database),
    devices: prismaDevices(database),
    channels: prismaChannels(database),
    messages: prismaMessages(database),
    turns: prismaTurns(database),
    agents: prismaAgents(database),
    agentBackends: prismaAgentBackends(database),
    agentFrames: prismaAgentFrames(database),
    pickers: prismaPickers(database),
    reads: prismaReads(database),
    receipts: prismaReceipts(database),
    media: prismaMediaRows(database),
    pushTargets: prismaPushTargets(database),
    pushRules: prismaPushRules(database),
    pushFrames: prismaPushFrames(database),
    pushLedger: prismaPushLedger(database),
    pushStale: prismaPushStale(database),
    pushOwed: prismaPushOwed(database),
    pushActions: prismaPushActions(database),
    audit: prismaAudit(database),
    usage: prismaUsage(database),
    keys: prismaKeys(database),
    async ready() {
      try {
        const [answer] = await sql.everywhere.rows<{ yes: boolean }>(writable);
        // A server that was demoted goes on answering; a new connection may lead to the one that took its place.
        if (answer?.yes !== true) for (const each of [sql, searching]) each.discardIdle();
        return answer?.yes === true;
      } catch {
        return false;
      }
    },
    async close() {
      await database.prisma.$disconnect();
      await Promise.all([sql.close(), searching.close()]);
    },
  };
}
