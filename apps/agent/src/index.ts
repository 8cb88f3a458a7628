export { AgentConfig, ModelSettings } from './config.js';
export { type BackendName, backends, type RunningAgent, type StartAgentOptions, startAgent } from './start-agent.js';
export { createTenantAgents, TenantAgent, type TenantAgents, type TenantAgentsOptions } from './tenants.js';
