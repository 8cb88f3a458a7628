/** For tests of agents: the gateway's side of the link, in memory and strict. */
export * from './testing/memory-net.js';
export * from './testing/scripted-gateway.js';
export type { SeenMessage, SeenTurn } from './testing/turn-book.js';
