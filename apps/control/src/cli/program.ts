import { readFileSync } from 'node:fs';
import { defaultQuotas } from '@iris/protocol';
import { Command, InvalidArgumentError, Option } from 'commander';
import { apiClient, type Call } from './api-client.js';

/** Where a running `npm start` says how to reach it. */
const devFile = '.iris/dev.json';

/**
 * The `iris` command: the admin API in a terminal. Prints JSON, one document per call.
 * @param io for tests
 */
export function program(io: { print: (text: string) => void; call?: Call }): Command {
  const iris = new Command('iris')
    .description(
      'Tenants, tokens, devices and quotas of an Iris Gateway. Without --url and --token it speaks to the `npm start` of this folder.',
    )
    .addOption(new Option('--url <url>', 'the admin API').env('IRIS_CONTROL_URL'))
    .addOption(new Option('--token <token>', 'the admin token').env('IRIS_ADMIN_TOKEN'));
  const call: Call = (...request) => (io.call ?? connect(iris.opts()))(...request);
  const show = async (answer: Promise<unknown>) => {
    const value = await answer;
    if (value !== undefined) io.print(`${JSON.stringify(value, null, 2)}\n`);
  };
  const of = (tenant: string, ...rest: string[]) =>
    ['/v1/tenants', tenant, ...rest].map((part, i) => (i === 0 ? part : encodeURIComponent(part))).join('/');

  const tenants = iris.command('tenants').description('make and list tenants');
  tenants
    .command('create <name>')
    .description('a new tenant with its tokens, which are shown this once')
    .action((name: string) => show(call('POST', '/v1/tenants', { name })));
  tenants
    .command('list')
    .description('all tenants')
    .action(() => show(everyTenant(call)));

  const tokens = iris.command('tokens').description('make, list and revoke tokens');
  tokens
    .command('create <tenant>')
    .description('a token, which is shown this once')
    .addOption(new Option('--kind <kind>', 'what it opens').choices(['device', 'agent']).default('device'))
    .option('--device-id <device_id>', 'only this device may use it')
    .option('--agent-id <agent_id>', 'which agent; the default one otherwise')
    .action((tenant: string, options: { kind: string; deviceId?: string; agentId?: string }) =>
      show(call('POST', of(tenant, 'tokens'), { kind: options.kind, device_id: options.deviceId, agent_id: options.agentId })),
    );
  tokens
    .command('list <tenant>')
    .description('tokens, without their secrets')
    .action((tenant: string) => show(call('GET', of(tenant, 'tokens'))));
  tokens
    .command('revoke <tenant> <token_id>')
    .description('revoke a token and close what it opened')
    .action((tenant: string, token: string) => show(call('DELETE', of(tenant, 'tokens', token))));

  const devices = iris.command('devices').description('list and revoke devices');
  devices
    .command('list <tenant>')
    .description('devices that have said hello')
    .action((tenant: string) => show(call('GET', of(tenant, 'devices'))));
  devices
    .command('revoke <tenant> <device_id>')
    .description('revoke a device and close its connection')
    .action((tenant: string, device: string) => show(call('DELETE', of(tenant, 'devices', device))));

  const quotas = iris.command('quotas').description('what a tenant may use');
  quotas
    .command('set <tenant> <name=value...>')
    .description(`change quotas: ${Object.keys(defaultQuotas).join(', ')}`)
    .action((tenant: string, words: string[]) => show(call('PATCH', of(tenant, 'quotas'), Object.fromEntries(words.map(quota)))));
  return iris;
}

async function everyTenant(call: Call): Promise<unknown> {
  const tenants: { tenant_id: string }[] = [];
  for (;;) {
    const after = tenants.at(-1)?.tenant_id;
    const page = (await call('GET', `/v1/tenants?limit=1000${after === undefined ? '' : `&after=${encodeURIComponent(after)}`}`)) as {
      tenants: typeof tenants;
    };
    if (page.tenants.length === 0) return { tenants };
    tenants.push(...page.tenants);
  }
}

function quota(word: string): [string, number] {
  const [name = '', value = ''] = word.split('=', 2);
  if (!/^\d+$/.test(value)) throw new InvalidArgumentError(`${word}: expected name=number`);
  return [name, Number(value)];
}

/** The options, else what a running `npm start` of this folder has written. */
function connect(options: { url?: string; token?: string }): Call {
  let dev: { control_url?: string; admin_token?: string } = {};
  if (options.url === undefined || options.token === undefined) {
    try {
      dev = JSON.parse(readFileSync(devFile, 'utf8')) as typeof dev;
    } catch {}
  }
  const url = options.url ?? dev.control_url;
  const token = options.token ?? dev.admin_token;
  if (url === undefined || token === undefined) throw new InvalidArgumentError(`--url and --token are needed: there is no ${devFile} here`);
  return apiClient(url, token);
}
