export * from './brokers.js';
export * from './ports.js';
export * from './postgres.js';
export * from './s3.js';
export type { Server } from './server.js';
