import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { findProgram, isRoot, run } from './commands.js';

/** A server that Debian packages, and how to get it elsewhere. */
export interface Obtainable {
  readonly name: 'redis' | 'nats';
  readonly program: string;
  readonly debian: string;
  readonly brew: string;
}

export const redisServer: Obtainable = { name: 'redis', program: 'redis-server', debian: 'redis-server', brew: 'redis' };
export const natsServer: Obtainable = { name: 'nats', program: 'nats-server', debian: 'nats-server', brew: 'nats-server' };

/** What to type to get these; one line. */
export const howToGet = (missing: readonly Obtainable[]): string =>
  `sudo apt-get install -y ${missing.map((one) => one.debian).join(' ')}   (macOS: brew install ${missing.map((one) => one.brew).join(' ')})`;

/**
 * Install Debian packages. The servers in them are not started: an installed Redis on its usual port is nobody's wish.
 * @returns undefined when done, else why not, in one line
 */
export async function installPackages(packages: readonly string[], say: (line: string) => void): Promise<string | undefined> {
  const apt = findProgram('apt-get');
  if (apt === undefined) return 'there is no apt-get on this machine';
  const prefix = isRoot() ? [] : [findProgram('sudo') ?? '', '-n'];
  if (prefix[0] === '') return 'packages can be installed by root only';
  say(`installing ${packages.join(' ')} (Debian packages)`);
  const policy = isRoot() ? keepServersDown() : undefined;
  const get = async (...args: string[]) => {
    const [program, ...rest] = [...prefix, apt, '-o', 'DPkg::Lock::Timeout=120', ...args];
    return run(program!, rest, { env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } });
  };
  try {
    const install = ['install', '-y', '-q', '--no-install-recommends', ...packages];
    let done = await get(...install);
    if (done.code !== 0) {
      // Most often the package lists are missing or old.
      await get('update', '-q');
      done = await get(...install);
    }
    return done.code === 0 ? undefined : `apt-get could not install ${packages.join(' ')}: ${done.output.trim().split('\n').at(-1)}`;
  } finally {
    policy?.();
  }
}

/** Debian's own way to say that installing a server does not start it. Leaves a policy that is there alone. */
function keepServersDown(): (() => void) | undefined {
  const file = '/usr/sbin/policy-rc.d';
  if (existsSync(file)) return undefined;
  writeFileSync(file, '#!/bin/sh\nexit 101\n', { mode: 0o755 });
  return () => rmSync(file, { force: true });
}
