import { systemClock } from '@iris/runtime';
import { OptionError, parseOptions, usage } from './options.js';
import { run } from './run.js';

try {
  const options = parseOptions(process.argv.slice(2));
  if (options === 'help') process.stdout.write(usage);
  else await run(options, systemClock);
} catch (error) {
  if (!(error instanceof OptionError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}
