import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { findProgram, isRoot } from './commands.js';

export interface User {
  readonly uid: number;
  readonly gid: number;
}

/** How to start a program as someone who is not root. */
export interface RunAs {
  /** Who must own what the program writes; undefined: we ourselves. */
  readonly owner?: User;
  /** Start the child as this user; undefined: as we are. */
  readonly spawnAs?: User;
  /** Comes before the program and its arguments. */
  readonly prefix: readonly string[];
}

/**
 * Postgres refuses to run as root. So root hands it to the owner of its data, else to `postgres`, else to `nobody`.
 * Root's home is often closed to everyone else; then the process gets the one capability that walks through closed folders.
 * @param data folder that the program owns, or will own
 * @param programs what it must reach besides
 * @throws with one line that says what to do
 */
export function notRoot(data: string, programs: string): RunAs {
  if (!isRoot()) return { prefix: [] };
  const owner = ownerOf(data) ?? userNamed('postgres') ?? userNamed('nobody');
  if (owner === undefined)
    throw new Error('as root, Postgres needs another user to run as: `useradd --system postgres`, or start as an ordinary user');
  if (canReach(owner, data) && canReach(owner, programs)) return { owner, spawnAs: owner, prefix: [] };
  const setpriv = findProgram('setpriv');
  const capability = walkingCapability();
  if (setpriv === undefined || capability === undefined) {
    throw new Error(
      `as root, Postgres runs as another user, who cannot reach ${data}: move the clone to /opt, or start as an ordinary user`,
    );
  }
  const only = `-all,+${capability}`;
  const user = ['--reuid', String(owner.uid), '--regid', String(owner.gid), '--clear-groups'];
  // Postgres asks access(2) for its own programs, which counts a capability only without the usual fix-up.
  const caps = ['--securebits=+no_setuid_fixup', `--inh-caps=${only}`, `--ambient-caps=${only}`, `--bounding-set=${only}`];
  return { owner, prefix: [setpriv, ...user, ...caps, '--'] };
}

function ownerOf(path: string): User | undefined {
  if (!existsSync(path)) return undefined;
  const { uid, gid } = statSync(path);
  return uid === 0 ? undefined : { uid, gid };
}

function userNamed(name: string): User | undefined {
  for (const line of readOr('/etc/passwd', '').split('\n')) {
    const [user, , uid, gid] = line.split(':');
    if (user === name) return { uid: Number(uid), gid: Number(gid) };
  }
  return undefined;
}

/** Whether the user may walk to the path; only the first group is looked at. */
function canReach(user: User, path: string): boolean {
  let folder = existsSync(path) ? realpathSync(path) : path;
  for (;;) {
    const parent = dirname(folder);
    if (parent === folder) return true;
    folder = parent;
    if (!existsSync(folder)) continue;
    const { uid, gid, mode } = statSync(folder);
    const bit = uid === user.uid ? 0o100 : gid === user.gid ? 0o010 : 0o001;
    if ((mode & bit) === 0) return false;
  }
}

/** The smaller of the two that a container may have been left with. */
function walkingCapability(): string | undefined {
  const bounding = BigInt(`0x${/^CapBnd:\s*([0-9a-f]+)/m.exec(readOr('/proc/self/status', ''))?.[1] ?? '0'}`);
  if ((bounding & 4n) !== 0n) return 'dac_read_search';
  return (bounding & 2n) !== 0n ? 'dac_override' : undefined;
}

function readOr(file: string, otherwise: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return otherwise;
  }
}
