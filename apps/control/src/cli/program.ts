import { defaultQuotas } from '@iris/protocol';
import { systemClock, systemRandom } from '@iris/runtime';
import { Command, InvalidArgumentError, Option } from 'commander';
import { renderUnicodeCompact } from 'uqr';
import type { ApiClient, Call } from './api-client.js';
import { connect, rememberLogin } from './connect.js';
import { signIn } from './login.js';

const digits = (text: string): number => {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError('expected a number');
  return Number(text);
};

/**
 * The `iris` command: the admin API in a terminal. Prints JSON, one document per call.
 * @param io for tests
 */
export function program(io: { print: (text: string) => void; call?: Call; client?: ApiClient }): Command {
  const iris = new Command('iris')
    .description(
      'Tenants, tokens, devices, agents, pushes and quotas of an Iris Gateway. Without --url and --token it speaks as whoever signed in, or to the `npm start` of this folder.',
    )
    .addOption(new Option('--url <url>', 'the admin API').env('IRIS_CONTROL_URL'))
    .addOption(new Option('--token <token>', 'an admin token').env('IRIS_ADMIN_TOKEN'));
  const client = (): ApiClient => io.client ?? connect(iris.opts());
  const call: Call = (...request) => (io.call ?? client().call)(...request);
  const show = async (answer: Promise<unknown>) => {
    const value = await answer;
    if (value !== undefined) io.print(`${JSON.stringify(value, null, 2)}\n`);
  };
  const of = (tenant: string, ...rest: string[]) =>
    ['/v1/tenants', tenant, ...rest].map((part, i) => (i === 0 ? part : encodeURIComponent(part))).join('/');
  const query = (path: string, values: Readonly<Record<string, string | number | undefined>>) => {
    const given = new URLSearchParams();
    for (const [name, value] of Object.entries(values)) if (value !== undefined) given.set(name, String(value));
    return given.size === 0 ? path : `${path}?${given}`;
  };

  tenantCommands();
  tokenCommands();
  deviceCommands();
  agentCommands();
  channelCommands();
  insightCommands();
  pushCommands();
  pairCommand();
  loginCommand();
  return iris;

  function tenantCommands() {
    const tenants = iris.command('tenants').description('make, list, suspend, move and delete tenants');
    tenants
      .command('create <name>')
      .description('a new tenant with its tokens, which are shown this once')
      .action((name: string) => show(call('POST', '/v1/tenants', { name })));
    tenants
      .command('list')
      .description('all tenants')
      .action(() => show(everyTenant(call)));
    tenants
      .command('show <tenant>')
      .description('one tenant')
      .action((tenant: string) => show(call('GET', of(tenant))));
    tenants
      .command('suspend <tenant>')
      .description('close everything it has open, and open nothing')
      .action((tenant: string) => show(call('PATCH', of(tenant), { state: 'suspended' })));
    tenants
      .command('resume <tenant>')
      .description('let it go on')
      .action((tenant: string) => show(call('PATCH', of(tenant), { state: 'active' })));
    tenants
      .command('export <tenant> <file>')
      .description('everything of it, into a new file')
      .action((tenant: string, file: string) => client().download(of(tenant, 'export'), file));
    tenants
      .command('import <file>')
      .description('a tenant from such a file; its new tokens are shown this once')
      .action((file: string) => show(client().upload('/v1/tenants/import', file)));
    tenants
      .command('delete <tenant>')
      .description('for good, with a receipt')
      .requiredOption('--yes <tenant>', 'the tenant once more, since nothing brings it back')
      .action((tenant: string, options: { yes: string }) => {
        if (options.yes !== tenant) throw new InvalidArgumentError('--yes must name the tenant');
        return show(call('DELETE', of(tenant)));
      });
    iris
      .command('quotas')
      .description('what a tenant may use')
      .command('set <tenant> <name=value...>')
      .description(`change quotas: ${Object.keys(defaultQuotas).join(', ')}`)
      .action((tenant: string, words: string[]) => show(call('PATCH', of(tenant, 'quotas'), Object.fromEntries(words.map(quota)))));
  }

  function tokenCommands() {
    const tokens = iris.command('tokens').description('make, list, rotate and revoke tokens');
    tokens
      .command('create <tenant>')
      .description('a token, which is shown this once')
      .addOption(new Option('--kind <kind>', 'what it opens').choices(['device', 'agent', 'admin']).default('device'))
      .option('--device-id <device_id>', 'only this device may use it')
      .option('--agent-id <agent_id>', 'which agent; the default one otherwise')
      .addOption(new Option('--role <role>', 'of an administrator').choices(['owner', 'admin', 'read-only']))
      .option('--label <label>', 'what it is for')
      .action((tenant: string, options: { kind: string; deviceId?: string; agentId?: string; role?: string; label?: string }) => {
        const { kind, deviceId: device_id, agentId: agent_id, role, label } = options;
        return show(call('POST', of(tenant, 'tokens'), { kind, device_id, agent_id, role, label }));
      });
    tokens
      .command('list <tenant>')
      .description('tokens, without their secrets')
      .action((tenant: string) => show(call('GET', of(tenant, 'tokens'))));
    tokens
      .command('rotate <tenant> <token_id>')
      .description('a new token in its place; what the old one has opened stays open')
      .option('--overlap-ms <ms>', 'how long the old one still opens; default a day', digits)
      .action((tenant: string, token: string, { overlapMs: overlap_ms }: { overlapMs?: number }) =>
        show(call('POST', of(tenant, 'tokens', token, 'rotate'), { overlap_ms })),
      );
    tokens
      .command('revoke <tenant> <token_id>')
      .description('revoke a token and close what it opened')
      .action((tenant: string, token: string) => show(call('DELETE', of(tenant, 'tokens', token))));
  }

  function deviceCommands() {
    const devices = iris.command('devices').description('list, name and revoke devices');
    devices
      .command('list <tenant>')
      .description('devices that have said hello')
      .action((tenant: string) => show(call('GET', of(tenant, 'devices'))));
    devices
      .command('rename <tenant> <device_id> <label>')
      .description('what to call it')
      .action((tenant: string, device: string, label: string) => show(call('PATCH', of(tenant, 'devices', device), { label })));
    devices
      .command('revoke <tenant> <device_id>')
      .description('revoke a device and close its connection')
      .action((tenant: string, device: string) => show(call('DELETE', of(tenant, 'devices', device))));
    devices
      .command('pushes <tenant> <device_id>')
      .description('what was decided about pushing to it, and why')
      .option('--limit <n>', 'default 100', digits)
      .option('--before <cursor>', 'only below this cursor', digits)
      .action((tenant: string, device: string, options: { limit?: number; before?: number }) =>
        show(call('GET', query(of(tenant, 'devices', device, 'pushes'), { ...options }))),
      );
  }

  function agentCommands() {
    const agents = iris.command('agents').description('who answers in a tenant’s channels');
    agents
      .command('list <tenant>')
      .description('agents, and whether their links are there')
      .action((tenant: string) => show(call('GET', of(tenant, 'agents'))));
    agents
      .command('create <tenant> <name>')
      .description('an agent with its token, which is shown this once')
      .option('--default', 'it answers where no other is named')
      .action((tenant: string, name: string, options: { default?: boolean }) =>
        show(call('POST', of(tenant, 'agents'), { name, ...(options.default ? { is_default: true } : {}) })),
      );
    agents
      .command('backend <tenant> <agent_id> <kind> [url]')
      .description('what the gateway’s own runner answers with: demo, openai or hermes with the address of the endpoint, or none')
      .addOption(new Option('--key <key>', 'of the endpoint; kept sealed').env('IRIS_BACKEND_KEY'))
      .option('--no-key', 'the endpoint wants no key any more')
      .option('--model <model>', 'default: the first that the endpoint names')
      .option('--system <text>', 'what the model is told before everything else')
      .action((tenant: string, agent: string, kind: string, url: string | undefined, options: BackendOptions) => {
        const { key, model, system: system_prompt } = options;
        const more =
          kind === 'demo' ? {} : { url, ...(key === false ? { key: null } : typeof key === 'string' ? { key } : {}), model, system_prompt };
        return show(call('PATCH', of(tenant, 'agents', agent), { backend: kind === 'none' ? null : { kind, ...more } }));
      });
    agents
      .command('remove <tenant> <agent_id>')
      .description('close its link, revoke its tokens, and give its channels to the default agent')
      .action((tenant: string, agent: string) => show(call('DELETE', of(tenant, 'agents', agent))));
    agents
      .command('rename <tenant> <agent_id> <name>')
      .description('what to call it')
      .action((tenant: string, agent: string, name: string) => show(call('PATCH', of(tenant, 'agents', agent), { name })));
    agents
      .command('default <tenant> <agent_id>')
      .description('it answers where no other is named')
      .action((tenant: string, agent: string) => show(call('PATCH', of(tenant, 'agents', agent), { is_default: true })));
  }

  function channelCommands() {
    const channels = iris.command('channels').description('which agent serves which channel');
    channels
      .command('list <tenant>')
      .description('channels and threads, and the agents they are bound to')
      .action((tenant: string) => show(call('GET', of(tenant, 'channels'))));
    channels
      .command('bind <tenant> <chat_id> [agent_id]')
      .description('bind a channel, with its threads, to an agent; without one, to the default agent')
      .action((tenant: string, chat: string, agent: string | undefined) =>
        show(call('PATCH', of(tenant, 'channels', chat), { agent_id: agent ?? null })),
      );
  }

  function insightCommands() {
    iris
      .command('restarting')
      .description('tell every connected device that the service restarts; nobody is disconnected by it')
      .action(() => show(call('POST', '/v1/restarting')));
    iris
      .command('usage <tenant>')
      .description('messages, turns and files of each day')
      .option('--from <day>', 'YYYY-MM-DD; default 30 days back')
      .option('--to <day>', 'YYYY-MM-DD; default today')
      .action((tenant: string, options: { from?: string; to?: string }) => show(call('GET', query(of(tenant, 'usage'), { ...options }))));
    iris
      .command('audit [tenant]')
      .description('who did what, newest first; without a tenant, what was about none')
      .option('--limit <n>', 'default 100', digits)
      .action((tenant: string | undefined, options: { limit?: number }) =>
        show(call('GET', query(tenant === undefined ? '/v1/audit' : of(tenant, 'audit'), { ...options }))),
      );
    iris
      .command('trace <message_id>')
      .description('what happened to one message, from acceptance to each device')
      .option('--tenant <tenant>', 'whose it is; otherwise each tenant is asked')
      .action(async (message: string, options: { tenant?: string }) => {
        const path = (tenant: string) => of(tenant, 'messages', message, 'trace');
        if (options.tenant !== undefined) return show(call('GET', path(options.tenant)));
        for (const { tenant_id } of (await everyTenant(call)).tenants) {
          const found = await call('GET', path(tenant_id)).catch((error: Error) => {
            if (!error.message.startsWith('not_found')) throw error;
          });
          if (found !== undefined) return show(Promise.resolve(found));
        }
        throw new InvalidArgumentError('message unknown');
      });
  }

  function pushCommands() {
    const push = iris.command('push').description('what is pushed, and why it was or was not');
    push
      .command('explain [tenant]')
      .description('why a phone did, or did not, buzz; without a tenant, of the only one there is')
      .requiredOption('--device <device_id>', 'which device')
      .option('--cursor <cursor>', 'which frame; without it, the last decisions')
      .action(async (tenant: string | undefined, { device, cursor }: { device: string; cursor?: string }) => {
        const owner = tenant ?? (await onlyTenant(call));
        await show(call('GET', of(owner, 'devices', device, 'push', ...(cursor === undefined ? [] : [cursor]))));
      });
    push
      .command('content <tenant> [content]')
      .description('what providers may read: full, title, ids or encrypted')
      .action((tenant: string, content: string | undefined) =>
        show(content === undefined ? call('GET', of(tenant, 'push')) : call('PATCH', of(tenant, 'push'), { content })),
      );
  }

  function pairCommand() {
    iris
      .command('pair <tenant>')
      .description('a one-time code for a new device, as a QR code and a link')
      .option('--label <label>', 'what the device’s token is for')
      .option('--valid-ms <ms>', 'default ten minutes', digits)
      .option('--json', 'only the JSON')
      .action(async (tenant: string, options: { label?: string; validMs?: number; json?: boolean }) => {
        const { label, validMs: valid_ms } = options;
        const pairing = (await call('POST', of(tenant, 'pairings'), { label, valid_ms })) as { code: string; link: string };
        if (options.json) return show(Promise.resolve(pairing));
        io.print(`${renderUnicodeCompact(pairing.link)}\n\n${pairing.link}\n\nor type the code: ${pairing.code}\n`);
      });
  }

  function loginCommand() {
    iris
      .command('login')
      .description('sign in at an OpenID Connect issuer, in a browser')
      .addOption(new Option('--issuer <url>', 'the issuer').env('IRIS_OIDC_ISSUER').makeOptionMandatory())
      .addOption(new Option('--client-id <id>', 'our name there').env('IRIS_OIDC_CLIENT_ID').default('iris'))
      .option('--scope <scope>', 'what to ask for', 'openid profile')
      .action(async ({ issuer, clientId: client_id, scope }: { issuer: string; clientId: string; scope: string }) => {
        const open = (url: string) => io.print(`open in a browser:\n${url}\n`);
        const signed = await signIn({ issuer, client_id, scope, open, clock: systemClock, random: systemRandom });
        rememberLogin(signed);
        io.print(`signed in until ${new Date(signed.expires_at).toISOString()}\n`);
      });
  }
}

interface BackendOptions {
  readonly key?: string | boolean;
  readonly model?: string;
  readonly system?: string;
}

async function everyTenant(call: Call): Promise<{ tenants: { tenant_id: string }[] }> {
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

async function onlyTenant(call: Call): Promise<string> {
  const { tenants } = (await call('GET', '/v1/tenants?limit=2')) as { tenants: { tenant_id: string }[] };
  const [only] = tenants;
  if (only === undefined || tenants.length > 1) throw new InvalidArgumentError('there are several tenants, or none: say which');
  return only.tenant_id;
}

function quota(word: string): [string, number] {
  const [name = '', value = ''] = word.split('=', 2);
  if (!/^\d+$/.test(value)) throw new InvalidArgumentError(`${word}: expected name=number`);
  return [name, Number(value)];
}
