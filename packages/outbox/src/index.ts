export { type KeyName, keyNames, keyOf } from './keys.js';
export * from './memory-outbox.js';
export * from './outbox.js';
export * from './redis-outbox.js';
