import { isFree, portNear } from '@iris/devstack';
import { OptionError, type Options } from './options.js';

/** Where everything listens. */
export interface Places {
  readonly edges: readonly number[];
  readonly control: number;
  readonly web: number;
  /** The next port for health and metrics. */
  health(): Promise<number>;
}

/** From the first edge's port to the first health port, so that 8080 gives 9101. */
const toHealth = 1_021;

/**
 * Edges stand exactly where they were asked to be, the rest near them where there is room.
 * @throws OptionError when an edge's port is taken
 */
export async function places({ port, edges, cluster }: Pick<Options, 'port' | 'edges' | 'cluster'>): Promise<Places> {
  const count = cluster ? edges : 1;
  const edgePorts = Array.from({ length: count }, (_, index) => port + index);
  for (const one of edgePorts) {
    if (!(await isFree(one))) throw new OptionError(`port ${one} is taken: choose another with --port`);
  }
  const taken = new Set(edgePorts);
  const beyond = port + Math.max(10, count);
  let health = port + toHealth;
  return {
    edges: edgePorts,
    control: await portNear(beyond, taken),
    web: await portNear(beyond + 1, taken),
    health: () => portNear(health++, taken),
  };
}
