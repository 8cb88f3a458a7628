/**
 * npm run test:pack: packs the runner and what it needs as npm would publish them, installs them into an empty folder, and runs `npx iris-agent` there,
 * asked about every rule of the agent link. Takes the dependencies from the registry, or from npm's cache. Ends with 1 when something does not hold.
 */
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { prepare, root } from './prepare.mjs';
import { say } from './step.mjs';

// By a name of its own, since the program is not of this repository's packages but of the empty folder's.
const program = 'iris-agent';
const packages = ['packages/protocol', 'packages/runtime', 'packages/agent-link', 'apps/agent'];

await prepare({ code: ['packages/testkit', 'apps/agent'], page: false });
const kit = await import(new URL('../packages/testkit/dist/agent-conformance/index.js', import.meta.url).href);
const folder = mkdtempSync(join(tmpdir(), 'iris-pack-'));
const npm = (args, cwd) => execFileSync('npm', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
let agent;
let served;
try {
  say('· packing');
  for (const path of packages) npm(['pack', '--silent', '--ignore-scripts', '--pack-destination', folder], join(root, path));
  const tarballs = readdirSync(folder).filter((name) => name.endsWith('.tgz'));
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'empty', private: true }));
  say(`· installing ${tarballs.join(', ')} into an empty folder`);
  npm(['install', '--silent', '--prefer-offline', '--no-audit', '--no-fund', ...tarballs.map((name) => `./${name}`)], folder);
  const help = execFileSync('npx', ['--no-install', program, '--help'], { cwd: folder, encoding: 'utf8' });
  if (!help.includes('--gateway')) throw new Error(`npx iris-agent --help says:\n${help}`);

  const token = 'iris-agent.conformance.0123456789abcdef';
  served = await kit.serveGateway({ port: 0, token });
  const begin = () => {
    agent = spawn('npx', ['--no-install', program, '--demo', '--pace', '20', '--spool', join(folder, 'spool')], {
      cwd: folder,
      // A group of its own: npx has the agent as a child.
      detached: true,
      stdio: 'ignore',
      env: { ...process.env, IRIS_GATEWAY_URL: served.url, IRIS_AGENT_TOKEN: token },
    });
  };
  begin();
  const results = await kit.runAgentConformance(
    {
      gateway: served.gateway,
      ask: '/demo echo Hello',
      ask_long: '/demo long 100 20',
      wait_ms: 30_000,
      async restart() {
        await kill();
        begin();
      },
    },
    { onResult: ({ title, result, evidence }) => say(`  ${result === 'holds' ? '✓' : '✗'} ${title}: ${evidence}`) },
  );
  const held = results.filter(({ result }) => result === 'holds').length;
  say(`\nnpx iris-agent in an empty folder: ${held} of ${results.length} hold`);
  process.exitCode = held === results.length ? 0 : 1;
} finally {
  if (agent) await kill();
  await served?.close();
  rmSync(folder, { recursive: true, force: true });
}

async function kill() {
  const gone = new Promise((resolve) => (agent.exitCode !== null || agent.signalCode !== null ? resolve() : agent.once('exit', resolve)));
  try {
    process.kill(-agent.pid, 'SIGKILL');
  } catch {
    // Gone already.
  }
  await gone;
}
