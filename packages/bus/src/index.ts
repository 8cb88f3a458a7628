export * from './affinity.js';
export * from './bus.js';
export * from './hop.js';
export * from './subjects.js';
