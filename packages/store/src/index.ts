export * from './rows.js';
export * from './store.js';
