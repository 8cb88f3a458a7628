export * from './filesystem-media.js';
export * from './media.js';
export * from './memory-media.js';
export * from './place.js';
export { type S3Address, s3Address } from './s3-address.js';
export * from './s3-media.js';
