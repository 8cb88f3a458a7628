import type { DataFolder, ProcessEntry, ServiceName } from '@iris/devstack';

/** A tenant as someone needs it who wants to speak to the gateway. */
export interface DevTenant {
  readonly tenant_id: string;
  readonly device_token: string;
  readonly agent_token: string;
  readonly agent_id: string;
}

/** Everything that tools and tests need to know of a running start. */
export interface DevInfo extends DevTenant {
  readonly edges: readonly string[];
  readonly agent_url: string;
  readonly control_url: string;
  /** With the token in it; absent without the web client. */
  readonly web_url?: string;
  readonly metrics: readonly string[];
  readonly admin_token: string;
  readonly tenants: readonly DevTenant[];
  readonly processes: readonly ProcessEntry[];
  readonly services: Partial<Record<ServiceName, string>>;
}

const file = 'dev.json';

/** `DIR/dev.json`: there exactly while everything is ready. */
export interface DevJson {
  /** Everything is ready: write it for the first time. */
  publish(info: Omit<DevInfo, 'processes'>): void;
  /** The processes have changed; nothing happens before {@link publish}. */
  refresh(): void;
  remove(): void;
}

export function devJson(folder: DataFolder, processes: () => readonly ProcessEntry[]): DevJson {
  let info: Omit<DevInfo, 'processes'> | undefined;
  // What a killed start has left would tell its readers of processes that are gone.
  folder.remove(file);
  const write = () => info !== undefined && folder.write(file, { ...info, processes: processes() });
  return {
    publish(next) {
      info = next;
      write();
    },
    refresh: () => void write(),
    remove() {
      info = undefined;
      folder.remove(file);
    },
  };
}
