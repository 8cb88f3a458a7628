import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';

const executable = [process.env.IRIS_TEST_BROWSER, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(
  (path) => path !== undefined && existsSync(path),
);
const args = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--no-first-run',
];

/** @throws when there is none on this machine */
export async function startChromium(): Promise<Browser> {
  if (executable === undefined) throw new Error('no browser: apt-get install chromium, or name one in IRIS_TEST_BROWSER');
  return chromium.launch({ executablePath: executable, args });
}
