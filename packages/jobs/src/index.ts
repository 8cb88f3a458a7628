export * from './jobs.js';
export * from './memory-jobs.js';
