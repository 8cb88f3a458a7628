export { AgentConfig, ModelSettings } from './config.js';
export { type BackendName, backends, type RunningAgent, type StartAgentOptions, startAgent } from './start-agent.js';
