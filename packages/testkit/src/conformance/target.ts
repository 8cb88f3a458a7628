import type { Patience } from '../record.js';
import { realPatience } from '../record.js';
import { type Dial, dialUrl } from '../wire.js';

/** A gateway, as its users reach it. */
export interface Target {
  readonly doors: readonly Door[];
  readonly patience: Patience;
  readonly device_token: string;
  readonly agent_token?: string;
  readonly admin?: Admin;
  /** Milliseconds over a stated time that a measurement may take on this machine. */
  readonly slack_ms: number;
}

/** One edge. */
export interface Door {
  readonly name: string;
  readonly device: Dial;
  /** Its `/agent`; the token goes in the `Authorization` header. */
  agent?(token: string | undefined): Dial;
  /** A device's socket with an `Origin` header; rejects when the upgrade is refused. Only on real servers. */
  from?(origin: string): Dial;
  /** The host that `Origin` is compared with. */
  readonly host?: string;
  /** Where the paths of its links begin. Only on real servers. */
  readonly http?: string;
}

/** What the operator of a gateway can do. */
export interface Admin {
  tenant(quotas?: Readonly<Record<string, number>>): Promise<Tenant>;
  token(tenant_id: string, kind: 'device' | 'agent', device_id?: string): Promise<{ token_id: string; token: string }>;
  /** Not every harness can. */
  revokeToken?(tenant_id: string, token_id: string): Promise<void>;
  revokeDevice?(tenant_id: string, device_id: string): Promise<void>;
}
export interface Tenant {
  readonly tenant_id: string;
  readonly device_token: string;
  readonly agent_token: string;
}

export interface UrlTarget {
  /** `ws://…/ws`, one per edge. */
  readonly urls: readonly string[];
  readonly token?: string;
  /** `ws://…/agent`, one per edge. */
  readonly agent_urls?: readonly string[];
  readonly agent_token?: string;
  readonly admin_url?: string;
  readonly admin_token?: string;
  /** Milliseconds until what should come counts as not coming. */
  readonly wait_ms?: number;
  readonly slack_ms?: number;
}

/** A gateway at URLs. Without a device token the admin API makes a tenant for the run. @throws when the admin API refuses */
export async function urlTarget(given: UrlTarget): Promise<Target> {
  const { urls, agent_urls = [], admin_url, admin_token } = given;
  const admin = admin_url === undefined ? undefined : httpAdmin(admin_url, admin_token ?? '');
  const own = given.token === undefined ? await admin?.tenant() : undefined;
  const device_token = given.token ?? own?.device_token;
  if (device_token === undefined) throw new Error('a device token is needed, or an admin URL');
  const agent_token = given.agent_token ?? own?.agent_token;
  return {
    doors: urls.map((url, i): Door => {
      const agent_url = agent_urls[i % Math.max(1, agent_urls.length)];
      return {
        name: url,
        host: new URL(url).host,
        http: url.replace(/^ws/, 'http'),
        device: dialUrl(url),
        from: (origin) => dialUrl(url, { origin }),
        ...(agent_url === undefined
          ? {}
          : {
              agent: (token) =>
                dialUrl(agent_url, {
                  protocols: ['iris-agent.v1'],
                  ...(token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } }),
                }),
            }),
      };
    }),
    patience: realPatience(given.wait_ms ?? 5_000),
    device_token,
    slack_ms: given.slack_ms ?? 500,
    ...(agent_token === undefined ? {} : { agent_token }),
    ...(admin === undefined ? {} : { admin }),
  };
}

function httpAdmin(url: string, admin_token: string): Admin {
  const ask = async (method: string, path: string, body?: unknown): Promise<unknown> => {
    const response = await fetch(new URL(path, url), {
      method,
      headers: { authorization: `Bearer ${admin_token}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`admin API: ${method} ${path}: ${response.status} ${text.slice(0, 200)}`);
    return text === '' ? undefined : JSON.parse(text);
  };
  let made = 0;
  const of = (tenant_id: string) => `/v1/tenants/${encodeURIComponent(tenant_id)}`;
  return {
    async tenant(quotas) {
      const tenant = (await ask('POST', '/v1/tenants', { name: `Conformance ${++made}` })) as Tenant;
      if (quotas !== undefined) await ask('PATCH', `${of(tenant.tenant_id)}/quotas`, quotas);
      return tenant;
    },
    token: (tenant_id, kind, device_id) =>
      ask('POST', `${of(tenant_id)}/tokens`, { kind, ...(device_id === undefined ? {} : { device_id }) }) as Promise<{
        token_id: string;
        token: string;
      }>,
    revokeToken: async (tenant_id, token_id) => void (await ask('DELETE', `${of(tenant_id)}/tokens/${encodeURIComponent(token_id)}`)),
    revokeDevice: async (tenant_id, device_id) => void (await ask('DELETE', `${of(tenant_id)}/devices/${encodeURIComponent(device_id)}`)),
  };
}
