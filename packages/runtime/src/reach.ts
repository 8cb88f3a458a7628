import { type LookupAddress, lookup } from 'node:dns';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { Type } from 'typebox';

/** Where requests may go. Names are looked at before the name server is asked, addresses before anything is sent to them. */
export interface Reach {
  /** Whether addresses of this machine and of private networks may be asked. */
  readonly private_addresses: boolean;
  /** When not empty: these hosts alone; `api.example.com`, or `*.example.com` for all below it. */
  readonly hosts?: readonly string[];
  /** Addresses or ranges (`10.1.0.0/16`) that may be asked even so. */
  readonly addresses?: readonly string[];
}

/** Refused before anything was sent: asking again would be refused again. */
export class OutOfReach extends Error {
  override readonly name = 'OutOfReach';
}

export interface Gate {
  /** @throws OutOfReach when the URL may not be asked at all */
  admit(url: URL): void;
  /** For `net.connect`: gives only addresses that may be asked, so that no other can be connected to. */
  readonly lookup: LookupFunction;
}

/** @param resolve the name server, for tests. @throws TypeError when a range is none */
export function gate(reach: Reach, resolve: typeof lookup = lookup): Gate {
  const allowed = new BlockList();
  for (const range of reach.addresses ?? []) addRange(allowed, range);
  const hosts = (reach.hosts ?? []).map((host) => host.toLowerCase());
  const within = (list: BlockList, address: string) => list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');
  const mayAsk = (address: string) => reach.private_addresses || isPublic(address) || within(allowed, address);

  return {
    admit(url) {
      if (url.protocol !== 'http:' && url.protocol !== 'https:') throw new OutOfReach(`${url.protocol} addresses are not asked`);
      if (url.username !== '' || url.password !== '') throw new OutOfReach('an address may not hold a name or a password');
      const host = bare(url.hostname);
      const literal = isIP(host) !== 0;
      const listed = hosts.length === 0 || hosts.some((one) => matches(one, host)) || (literal && within(allowed, host));
      if (!listed) throw new OutOfReach(`${url.hostname} is not on the list of hosts`);
      if (literal && !mayAsk(host)) throw new OutOfReach(`${url.hostname} is a private address`);
    },
    lookup(host, options, callback) {
      resolve(host, { ...options, all: true }, (error, addresses: LookupAddress[]) => {
        if (error) return callback(error, '', 0);
        // One that points inside is no accident: the whole answer is refused.
        const bad = addresses.find(({ address }) => !mayAsk(address));
        if (bad !== undefined) return callback(new OutOfReach(`${host} is at a private address`), '', 0);
        const [first] = addresses;
        if (first === undefined) return callback(new Error(`${host} has no address`), '', 0);
        if (options.all) return callback(null, addresses);
        callback(null, first.address, first.family);
      });
    },
  };
}

const bare = (hostname: string): string =>
  hostname
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '')
    .toLowerCase();
const matches = (pattern: string, host: string): boolean =>
  pattern.startsWith('*.') ? host.endsWith(pattern.slice(1)) && host.length > pattern.length - 1 : host === pattern;

function addRange(list: BlockList, range: string): void {
  const [address = '', prefix] = range.split('/');
  const family = isIP(address);
  const most = family === 6 ? 128 : 32;
  const bits = prefix === undefined ? most : Number(prefix);
  if (family === 0 || !/^\d*$/.test(prefix ?? '') || prefix === '' || bits > most)
    throw new TypeError(`${range} is no address and no range`);
  list.addSubnet(address, bits, family === 6 ? 'ipv6' : 'ipv4');
}

/** What is not for the whole internet (IANA's registries of special addresses), and multicast. */
const special4 = new BlockList();
for (const range of [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
])
  addRange(special4, range);
/** Only this is given out; the rest is local, multicast, or an IPv4 address in disguise. */
const global6 = new BlockList();
addRange(global6, '2000::/3');
/** In it: protocol assignments and tunnels that carry IPv4 addresses, and examples. */
const special6 = new BlockList();
for (const range of ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20']) addRange(special6, range);

const isPublic = (address: string): boolean =>
  isIP(address) === 6
    ? global6.check(address, 'ipv6') && !special6.check(address, 'ipv6')
    : isIP(address) === 4 && !special4.check(address, 'ipv4');

/** A {@link Reach} where others choose the addresses. */
export const ReachConfig = {
  private_addresses: Type.Boolean({
    default: false,
    description: 'whether endpoints that tenants name may be on this machine or in a private network',
  }),
  allow_hosts: Type.Array(Type.String({ minLength: 1 }), {
    default: [],
    description: 'hosts that such endpoints may be on (*.example.com: all below it); default: any',
  }),
  allow_addresses: Type.Array(Type.String({ minLength: 1 }), {
    default: [],
    description: 'private addresses or ranges (10.1.0.0/16) that are allowed even so',
  }),
};
