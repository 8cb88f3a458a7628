/** The conformance kit over real sockets, as anyone would run it: against one process, and against a cluster. */

import { freePort } from '@iris/devstack';
import { type Cluster, type ClusterTenant, cluster } from '@iris/testkit';
import { type Admin, type Result, runConformance, specRules, type Target, urlTarget } from '@iris/testkit/conformance';
import { afterEach, expect, jest, test } from '@jest/globals';
import { starts } from './started.js';

jest.setTimeout(240_000);
const rules = specRules();
const undo: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const one of undo.splice(0).reverse()) await one();
});

const wrong = (results: readonly Result[]) =>
  results.filter(({ outcome }) => outcome === 'fail' || outcome === 'unchecked').map(({ rule, evidence }) => `${rule}: ${evidence}`);
/** Built rules that were not asked about, for want of something. */
const unasked = (results: readonly Result[]) =>
  results.filter(({ outcome, later }) => outcome === 'needs' && !later).map(({ rule }) => rule);

test('HEL15 HEL29 CLS3: one process holds every rule that is built and can be seen from outside', async () => {
  const place = starts();
  undo.push(place.close);
  const port = 20_000 + ((await freePort()) % 20_000);
  const start = place.start(place.dir(), ['--port', String(port), '--no-web', '--agent', 'none']);
  const { edges, agent_url, control_url, admin_token } = await start.ready();
  // Tenants of its own, from the admin API.
  const target = await urlTarget({
    urls: edges,
    agent_urls: [agent_url],
    admin_url: control_url,
    admin_token,
    wait_ms: 15_000,
    slack_ms: 3_000,
  });
  const results = await runConformance(target, { rules, max_seconds: 60 });
  expect(wrong(results)).toEqual([]);
  expect(unasked(results)).toEqual(['SYN8']);
});

test('HEL12 HEL24 LNK7: a cluster of two edges and two session instances holds them, too', async () => {
  // A file may be had when a worker has looked at it.
  const all = await cluster({ workers: 1 });
  undo.push(() => all.close());
  const results = await runConformance(await clusterTarget(all), { rules });
  expect(wrong(results)).toEqual([]);
  expect(results.filter(({ outcome }) => outcome === 'pass').length).toBeGreaterThan(200);
});

/** Without an admin API: tenants are made in its store. */
async function clusterTarget(all: Cluster): Promise<Target> {
  const tenant = (quotas?: Readonly<Record<string, number>>): Promise<ClusterTenant> => all.tenant(quotas);
  const admin: Admin = {
    tenant,
    token: () => Promise.reject(Object.assign(new Error('no admin API'), { needed: 'the admin API' })),
  };
  const { device_token, agent_token } = await tenant();
  const target = await urlTarget({
    urls: all.edges.map(({ url }) => url),
    agent_urls: all.edges.map(({ agent_url }) => agent_url),
    token: device_token,
    agent_token,
    wait_ms: 15_000,
    slack_ms: 3_000,
  });
  return { ...target, admin };
}
