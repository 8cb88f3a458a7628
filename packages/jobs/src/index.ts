export * from './bullmq-jobs.js';
export * from './jobs.js';
export * from './memory-jobs.js';
