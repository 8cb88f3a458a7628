import { program } from './program.js';

try {
  await program({ print: (text) => process.stdout.write(text) }).parseAsync();
} catch (error) {
  process.stderr.write(`iris: ${(error as Error).message}\n`);
  process.exitCode = 1;
}
