export { voidFrame } from './agent-frame.js';
export { memoryStore } from './memory-store/memory-store.js';
export { migrate } from './migrate.js';
export { type PrismaStoreOptions, prismaStore } from './prisma-store/prisma-store.js';
export * from './push.js';
export * from './push-note.js';
export * from './rows.js';
export * from './store.js';
export * from './token-hash.js';
