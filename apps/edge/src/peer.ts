import { BlockList, isIP, isIPv4 } from 'node:net';

/** Whether a page may open a socket: browsers say where it came from, and nothing else does. */
export function originAllowed(origin: string, host: string, origins: readonly string[] | 'same-host'): boolean {
  if (origins !== 'same-host') return origins.includes(origin);
  try {
    const from = new URL(origin);
    // Read the same way, so that a port that goes without saying may be said on one side.
    return from.host !== '' && from.host === new URL(`${from.protocol}//${host}`).host;
  } catch {
    return false;
  }
}

/** @throws for what is no address or network */
export function networks(list: readonly string[]): BlockList {
  const found = new BlockList();
  for (const one of list) {
    const [address = '', bits] = one.split('/');
    const family = isIPv4(address) ? 'ipv4' : 'ipv6';
    if (isIP(address) === 0) throw new Error(`trusted_proxies: ${one} is no address`);
    if (bits === undefined) found.addAddress(address, family);
    else found.addSubnet(address, Number(bits), family);
  }
  return found;
}

/** The nearest address that is not one of our proxies: what is further out, anyone can write. */
export function clientAddress(peer: string, forwarded: string, proxies: BlockList): string {
  const trusted = (address: string) => isIP(address) !== 0 && proxies.check(address, isIPv4(address) ? 'ipv4' : 'ipv6');
  const hops = forwarded === '' ? [] : forwarded.split(',').map((one) => one.trim());
  let address = peer;
  while (trusted(address) && hops.length > 0) {
    const next = hops.pop()!;
    if (isIP(next) === 0) break;
    address = next;
  }
  return address;
}
