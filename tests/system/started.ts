import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { dialUrl, realPatience, type TestDevice, testDevice } from '@iris/testkit';

/** What `dev.json` holds, as far as the tests look. */
export interface Dev {
  readonly edges: readonly string[];
  readonly agent_url: string;
  readonly control_url: string;
  readonly web_url?: string;
  readonly metrics: readonly string[];
  readonly admin_token: string;
  readonly tenant_id: string;
  readonly device_token: string;
  readonly agent_token: string;
  readonly agent_id: string;
  readonly tenants: readonly { readonly tenant_id: string; readonly device_token: string }[];
  readonly processes: readonly { readonly part: string; readonly index: number; readonly pid: number; readonly port: number }[];
  readonly services: Readonly<Record<string, string>>;
}

/** One `npm start`, as a person starts it. */
export interface Started {
  readonly pid: number;
  readonly output: () => string;
  readonly ended: Promise<{ code: number | null; signal: string | null }>;
  /** Resolves when it says it is ready. @throws with what it said when it ends before */
  ready(): Promise<Dev>;
  dev(): Dev;
  hasDev(): boolean;
  /** Resolves when it has said this, from now on. */
  said(what: RegExp): Promise<void>;
  kill(signal: NodeJS.Signals): void;
  device(name: string, edge?: number): Promise<TestDevice>;
}

const script = fileURLToPath(new URL('../../scripts/start.mjs', import.meta.url));

/** A place for starts; everything in it is ended and removed by `close`. */
export function starts() {
  const root = mkdtempSync(join(tmpdir(), 'iris-start-'));
  const running: ChildProcess[] = [];
  return {
    dir: (name = 'data') => join(root, name),
    start(dir: string, args: readonly string[]): Started {
      const child = spawn(process.execPath, [script, '--data', dir, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
      running.push(child);
      return started(child, dir);
    },
    async close() {
      for (const child of running.splice(0)) {
        if (child.exitCode !== null || child.signalCode !== null) continue;
        child.kill('SIGINT');
        await once(child, 'exit');
      }
      rmSync(root, { recursive: true, force: true });
    },
  };
}

function started(child: ChildProcess, dir: string): Started {
  let output = '';
  const listeners = new Set<() => void>();
  for (const stream of [child.stdout!, child.stderr!]) {
    stream.on('data', (data: Buffer) => {
      output += data.toString();
      for (const listener of [...listeners]) listener();
    });
  }
  const ended = once(child, 'close').then(([code, signal]) => ({ code: code as number | null, signal: signal as string | null }));
  const file = join(dir, 'dev.json');
  const dev = () => JSON.parse(readFileSync(file, 'utf8')) as Dev;
  const heard = (what: RegExp, from: number) =>
    new Promise<void>((resolve, reject) => {
      const look = () => {
        if (!what.test(output.slice(from))) return;
        listeners.delete(look);
        resolve();
      };
      listeners.add(look);
      look();
      void ended.then(() => reject(new Error(`it ended:\n${output}`)));
    });
  return {
    pid: child.pid!,
    output: () => output,
    ended,
    async ready() {
      await heard(/^Ctrl-C stops everything/m, 0);
      return dev();
    },
    dev,
    hasDev: () => existsSync(file),
    said: (what) => heard(what, output.length),
    kill: (signal) => void child.kill(signal),
    async device(name, edge = 0) {
      const { edges, device_token } = dev();
      const device = testDevice({ device_id: name, token: device_token, dial: dialUrl(edges[edge]!), patience: realPatience(20_000) });
      const answer = await device.join();
      if (answer.type !== 'hello.ack') throw new Error(JSON.stringify(answer));
      return device;
    },
  };
}
