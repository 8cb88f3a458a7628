/**
 * npm run test:firefox: Web Push in a real browser. A Firefox subscribes at a push service of this machine, the gateway pushes to it, its service worker
 * shows, replaces, takes back, and answers. Ends with 1 when a step did not happen; without a Firefox it says so and does nothing.
 */
import { findFirefox } from '../tests/firefox/firefox.mjs';
import { prepare } from './prepare.mjs';

const path = findFirefox();
if (path === undefined) {
  console.log('test:firefox: skipped, no Firefox (apt-get install firefox-esr, or name one in IRIS_TEST_FIREFOX)');
  process.exit(0);
}
await prepare({ code: 'all', page: true });
const { webPush } = await import('../tests/firefox/web-push.mjs');
process.exit((await webPush(path)) ? 0 : 1);
