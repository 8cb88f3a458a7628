export * from './affinity.js';
export * from './bus.js';
export * from './hop.js';
export * from './memory-bus.js';
export * from './subjects.js';
