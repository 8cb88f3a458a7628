import type { DataFolder, ProcessEntry, ServiceName, Supervisor } from '@iris/devstack';
import type { Clock, Lifecycle, Log } from '@iris/runtime';
import type { DevTenant } from './dev-json.js';
import type { Options } from './options.js';
import type { Settings } from './settings.js';

/** What a start works with, in one process or in several. */
export interface Start {
  readonly life: Lifecycle;
  readonly options: Options;
  readonly settings: Settings;
  readonly folder: DataFolder;
  readonly admin_token: string;
  readonly clock: Clock;
  readonly log: Log;
  /** What keeps processes running; stopped before everything that was started before this call. */
  supervise(): Promise<Supervisor>;
  /** One line for the person who started it. */
  say(line: string): void;
}

/** The gateway, up and ready to be asked. */
export interface System {
  readonly edges: readonly string[];
  readonly agent_url: string;
  readonly control_url: string;
  /** The browser client's page. */
  readonly page_url?: string;
  readonly metrics: readonly string[];
  readonly services: Partial<Record<ServiceName, string>>;
  /** Parts that share this process. */
  readonly here: readonly ProcessEntry[];
  /** Attach the demo agent to each of these. */
  attach(tenants: readonly DevTenant[]): Promise<void>;
}
