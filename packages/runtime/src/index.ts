export * from './attributes.js';
export * from './clock.js';
export * from './config.js';
export * from './ids.js';
export * from './log.js';
export * from './meter.js';
export * from './pino-log.js';
export * from './random.js';
