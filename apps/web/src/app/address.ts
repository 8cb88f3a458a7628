/** Where the gateway is and who we are: from the link, else as remembered from the last one. */
export interface Address {
  readonly gateway: string;
  readonly token: string;
  readonly device_id: string;
}

const remembered = { gateway: 'iris.gateway', token: 'iris.token', device: 'iris.device' } as const;

/** Undefined when neither the link nor the browser's storage knows a gateway and a token. */
export function readAddress(
  location: Pick<Location, 'search' | 'hash'>,
  storage: Pick<Storage, 'getItem' | 'setItem'>,
): Address | undefined {
  const query = new URLSearchParams(location.search);
  const gateway = query.get('gateway') ?? storage.getItem(remembered.gateway);
  const token = new URLSearchParams(location.hash.replace(/^#/, '')).get('token') ?? storage.getItem(remembered.token);
  if (!gateway || !token) return undefined;
  storage.setItem(remembered.gateway, gateway);
  storage.setItem(remembered.token, token);
  // `?device=` makes a second device in the same browser, which otherwise is one.
  const named = query.get('device');
  const device_id = named ?? storage.getItem(remembered.device) ?? `web-${crypto.randomUUID()}`;
  if (!named) storage.setItem(remembered.device, device_id);
  return { gateway, token, device_id };
}
