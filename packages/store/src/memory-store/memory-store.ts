import { type Clock, systemClock } from '@iris/runtime';
import type { Store } from '../store.js';
import { memoryAgentBackends } from './agent-backends.js';
import { memoryAgentFrames } from './agent-frames.js';
import { memoryAgents } from './agents.js';
import { memoryAudit } from './audit.js';
import { memoryChannels } from './channels.js';
import { memoryDevices } from './devices.js';
import { memoryKeys } from './keys.js';
import { memoryMediaRows } from './media-rows.js';
import { memoryMessages } from './messages.js';
import { memoryPairings } from './pairings.js';
import { memoryPickers } from './pickers.js';
import { memoryPushActions, memoryPushFrames, memoryPushLedger, memoryPushRules, memoryPushTargets } from './push.js';
import { memoryPushOwed, memoryPushStale } from './push-marks.js';
import { memoryReads } from './reads.js';
import { memoryReceipts } from './receipts.js';
import { memoryState } from './state.js';
import { memoryTenants } from './tenants.js';
import { memoryTokens } from './tokens.js';
import { memoryTurns } from './turns.js';
import { memoryUsage } from './usage.js';

/** The store in this process's memory, for tests: each call is one synchronous step, and nothing outlives it. */
export function memoryStore(clock: Clock = systemClock): Store {
  const state = memoryState(clock);
  let open = true;
  return {
    tenants: memoryTenants(state),
    tokens: memoryTokens(state),
    pairings: memoryPairings(state),
    devices: memoryDevices(state),
    channels: memoryChannels(state),
    messages: memoryMessages(state),
    turns: memoryTurns(state),
    agents: memoryAgents(state),
    agentBackends: memoryAgentBackends(state),
    agentFrames: memoryAgentFrames(state),
    pickers: memoryPickers(state),
    reads: memoryReads(state),
    receipts: memoryReceipts(state),
    media: memoryMediaRows(state),
    pushTargets: memoryPushTargets(state),
    pushRules: memoryPushRules(state),
    pushFrames: memoryPushFrames(state),
    pushLedger: memoryPushLedger(state),
    pushStale: memoryPushStale(state),
    pushOwed: memoryPushOwed(state),
    pushActions: memoryPushActions(state),
    audit: memoryAudit(state),
    usage: memoryUsage(state),
    keys: memoryKeys(state),
    ready: async () => open,
    async close() {
      open = false;
    },
  };
}
