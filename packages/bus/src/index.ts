export * from './affinity.js';
export * from './bus.js';
export * from './durable-records.js';
export * from './hop.js';
export * from './membership.js';
export * from './memory-bus.js';
export * from './nats-bus.js';
export * from './subjects.js';
