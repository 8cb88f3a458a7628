export { filesystemMedia } from './filesystem-media.js';
export * from './media.js';
