export { type AgentResult, runAgentConformance } from './run.js';
export { serveGateway } from './serve.js';
export type { Subject } from './subject.js';
