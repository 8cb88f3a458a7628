export * from './filesystem-media.js';
export * from './media.js';
export { type S3Address, s3Address } from './s3-address.js';
export * from './s3-media.js';
