export { defaultWorkerConfig, WorkerConfig } from './config.js';
export { WorkerProcessConfig } from './process-config.js';
export type { Http } from './senders/http.js';
export { createWorker, type Worker, type WorkerDeps } from './worker.js';
