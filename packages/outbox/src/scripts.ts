import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { KeyName } from './keys.js';

/** Each script and the keys it is given, in its order. The scripts say at their heads what they take and return. */
const keysOf = {
  append: ['seq', 'log', 'keys', 'keys_before', 'ids', 'newest', 'edges'],
  seed: ['seq', 'log', 'keys', 'keys_before', 'ids', 'newest', 'values'],
  extend: ['seq'],
  read: ['seq', 'log', 'newest'],
  forget: ['seq', 'log', 'ids', 'newest'],
  'forget-lane': ['seq', 'log', 'ids', 'newest'],
  trim: ['seq', 'log', 'ids', 'newest', 'live', 'edges', 'holds'],
  register: ['seq', 'marks', 'live', 'edges', 'holds'],
  unregister: ['live', 'edges', 'holds'],
  refresh: ['live', 'edges', 'holds'],
  confirm: ['marks'],
  devices: ['marks', 'live'],
  put: ['values'],
  // Its key is no tenant's.
  attempt: [],
} as const satisfies Record<string, readonly KeyName[]>;

export type ScriptName = keyof typeof keysOf;

export interface Script {
  readonly text: string;
  readonly sha: string;
  readonly keys: readonly KeyName[];
}

/** Beside `src` and `dist` alike, so that neither tests nor builds have anything to copy. */
const folder = new URL('../lua/', import.meta.url);
const readLua = (name: string): string => readFileSync(new URL(`${name}.lua`, folder), 'utf8');

function load(name: ScriptName): Script {
  const text = readLua(name).replace(/^-- include (\w+)$/gm, (_, part: string) => readLua(`parts/${part}`));
  return { text, sha: createHash('sha1').update(text).digest('hex'), keys: keysOf[name] };
}

export const scripts = new Map((Object.keys(keysOf) as ScriptName[]).map((name) => [name, load(name)]));
