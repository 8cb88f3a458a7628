import type { TenantId } from '@iris/protocol';
import { keyOf } from './keys.js';
import type { Line } from './redis-link.js';
import { type ScriptName, scripts } from './scripts.js';

export type Argument = string | number | Buffer;

/** A script on a tenant's keys. @param binary give strings in the reply as Buffers */
export const script = <R>(line: Line, name: ScriptName, tenant_id: TenantId, args: Argument[], binary = false): Promise<R> =>
  scriptOn(
    line,
    name,
    scripts.get(name)!.keys.map((key) => keyOf(tenant_id, key)),
    args,
    binary,
  );

export async function scriptOn<R>(line: Line, name: ScriptName, keys: readonly string[], args: Argument[], binary = false): Promise<R> {
  const { sha, text } = scripts.get(name)!;
  const call = binary ? line.client.callBuffer.bind(line.client) : line.client.call.bind(line.client);
  const given = [keys.length, ...keys, ...args];
  try {
    return (await call('EVALSHA', [sha, ...given])) as R;
  } catch (error) {
    // Someone flushed the scripts.
    if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
    return (await call('EVAL', [text, ...given])) as R;
  }
}

/** Write what `send` sends in one system call. */
export function together<R>(line: Line, send: () => Promise<R>[]): Promise<R[]> {
  const { stream } = line.client;
  stream.cork();
  try {
    return Promise.all(send());
  } finally {
    stream.uncork();
  }
}
