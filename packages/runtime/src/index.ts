export * from './clock.js';
export * from './log.js';
