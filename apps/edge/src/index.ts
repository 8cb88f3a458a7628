export { defaultEdgeConfig, EdgeConfig } from './config.js';
export type { EdgeDeps } from './context.js';
export { createEdge, type Edge, type EdgeStats } from './edge.js';
export { EdgeProcessConfig } from './process-config.js';
export * from './socket.js';
export { startUwsServer, type UwsServer, type UwsServerOptions } from './uws-server.js';
