/** What tests need in place of the real thing: time, chance and measurements that they hold in their hands. */
export * from './testing/manual-clock.js';
export * from './testing/recording-meter.js';
export * from './testing/seeded-random.js';
