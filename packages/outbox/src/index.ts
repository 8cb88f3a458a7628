export * from './memory-outbox.js';
export * from './outbox.js';
