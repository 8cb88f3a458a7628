import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { systemClock } from '@iris/runtime';
import { InvalidArgumentError } from 'commander';
import { type ApiClient, apiClient } from './api-client.js';
import type { SignedIn } from './login.js';

/** Where a running `npm start` says how to reach it, and where who has signed in is remembered. */
const devFile = '.iris/dev.json';
const loginFile = '.iris/login.json';

function read<T>(file: string): Partial<T> {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as T;
  } catch {
    return {};
  }
}

/** The options, else who has signed in, else what a running `npm start` of this folder has written. */
export function connect(options: { url?: string; token?: string }): ApiClient {
  const dev = read<{ control_url: string; admin_token: string }>(devFile);
  const login = read<SignedIn>(loginFile);
  const url = options.url ?? dev.control_url;
  const token = options.token ?? ((login.expires_at ?? 0) > systemClock.now() ? login.token : undefined) ?? dev.admin_token;
  if (url === undefined || token === undefined) throw new InvalidArgumentError(`--url and --token are needed: there is no ${devFile} here`);
  return apiClient(url, token);
}

export function rememberLogin(signed: SignedIn): void {
  mkdirSync('.iris', { recursive: true });
  writeFileSync(loginFile, JSON.stringify(signed), { mode: 0o600 });
}
