import { type Static, Type } from 'typebox';
import { type Clock, systemClock } from './clock.js';
import { type Health, serveHealth } from './health.js';
import { type Ids, makeIds } from './ids.js';
import { type Lifecycle, runProcess } from './lifecycle.js';
import type { Log } from './log.js';
import type { Meter } from './meter.js';
import { logLevels, pinoLog } from './pino-log.js';
import { type Random, systemRandom } from './random.js';
import { measureProcess, telemetry } from './telemetry.js';

/** What every process is told, whatever it does. */
export const PartConfig = Type.Object({
  health_host: Type.String({ default: '127.0.0.1', description: 'address of /healthz, /readyz and /metrics' }),
  health_port: Type.Integer({ default: 0, minimum: 0, maximum: 65_535, description: 'their port; 0 takes a free one' }),
  log_level: Type.Enum([...logLevels], { default: 'info', description: 'least severe log line that is written' }),
  stop_ms: Type.Integer({ default: 10_000, minimum: 0, maximum: 3_600_000, description: 'milliseconds for stopping everything' }),
});
export type PartConfig = Static<typeof PartConfig>;

/** What every process has, before it starts what it is there for. */
export interface PartTools {
  /** `<part>-<random>`: this process among all that ever were. */
  readonly instance: string;
  readonly life: Lifecycle;
  readonly health: Health;
  readonly clock: Clock;
  readonly random: Random;
  readonly ids: Ids;
  readonly log: Log;
  readonly meter: Meter;
}

/**
 * The life of one part as a process of its own: `start` lists what it consists of, and it is ready when that list is through.
 * Health and metrics are there before it and go after it. Signals as in {@link runProcess}.
 * @param part `edge`, `session`, …: names it in logs and metrics
 */
export async function runPart(part: string, config: Readonly<PartConfig>, start: (tools: PartTools) => Promise<void>): Promise<void> {
  const clock = systemClock;
  const random = systemRandom;
  const ids = makeIds({ clock, random });
  const instance = `${part}-${ids.random(10)}`;
  const log = pinoLog({ level: config.log_level, clock, fields: { part, instance } });
  await runProcess({ log, clock, stop_ms: config.stop_ms }, async (life) => {
    const measured = await life.start(
      'telemetry',
      () => telemetry({ service: part, instance }),
      (one) => one.close(),
    );
    const { meter } = measured;
    await life.start(
      'measures',
      () => measureProcess({ meter, clock }),
      (end) => end(),
    );
    const health = await life.start(
      'health',
      () => serveHealth({ host: config.health_host, port: config.health_port, clock, metrics: () => measured.scrape() }),
      (one) => one.close(),
    );
    await start({ instance, life, health, clock, random, ids, log, meter });
    // Last to start, so first to stop: no work comes to what is going.
    await life.start(
      'readiness',
      () => health.setReady(true),
      () => health.setReady(false),
    );
  });
}
