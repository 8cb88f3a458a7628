export { defaultWorkerConfig, WorkerConfig } from './config.js';
export { type Cinema, type CinemaLimits, findCinema } from './media/cinema.js';
export { MediaConfig } from './media/config.js';
export { cinemaLimits, processStudio, type Studio, type StudioLimits, studioLimits } from './media/studio.js';
export { WorkerProcessConfig } from './process-config.js';
export type { Http } from './senders/http.js';
export { createWorker, type Worker, type WorkerDeps } from './worker.js';
