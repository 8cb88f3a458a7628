/**
 * Preloaded into the processes of a cluster. Their standard input is a pipe from the supervisor that nothing is ever written
 * to: when it ends, the supervisor is gone, however it died, and so should they be.
 */
import { stdin } from 'node:process';

stdin.on('end', () => process.kill(process.pid, 'SIGTERM'));
stdin.on('error', () => process.kill(process.pid, 'SIGTERM'));
stdin.resume();
// Waiting for it is no reason to stay.
(stdin as unknown as { unref?: () => void }).unref?.();
