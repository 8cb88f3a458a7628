/** What is written from the frame table for readers and other tools: `npm run docs`. */
export { asyncApi } from './documents/asyncapi.js';
export { frameName, frameSchema, type Json, jsonSchema, plain, saidBy, sideNames, sides } from './documents/json-schema.js';
export { parseRules, type Rule } from './documents/rules.js';
