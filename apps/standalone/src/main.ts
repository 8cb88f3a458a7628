import { OptionError, parseOptions, usage } from './options.js';

try {
  const options = parseOptions(process.argv.slice(2));
  if (options === 'help') process.stdout.write(usage);
  else {
    // All there is, which takes a moment to load: a slip is told before.
    const { run } = await import('./run.js');
    await run(options);
  }
} catch (error) {
  if (!(error instanceof OptionError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}
