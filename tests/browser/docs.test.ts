/** The docs page of the admin API in a real browser: an operator signs in at an issuer, and makes calls from the page. */
import { memoryHub } from '@iris/bus';
import { type Api, buildApi, defaultControlConfig } from '@iris/control';
import { silentLog, systemClock, systemRandom } from '@iris/runtime';
import { memoryStore, type Store } from '@iris/store';
import { type OidcIssuer, oidcIssuer } from '@iris/testkit';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { startChromium } from './chromium.js';

let issuer: OidcIssuer;
let store: Store;
let api: Api;
let url: string;
let browser: Browser;
const admin_token = 'admin-token-of-the-test';

beforeAll(async () => {
  [issuer, browser] = await Promise.all([oidcIssuer({ roles: ['iris-admin'], sub: 'ada' }), startChromium()]);
  store = memoryStore();
  const deps = { store, bus: memoryHub({ clock: systemClock }).connect(), clock: systemClock, random: systemRandom, log: silentLog };
  api = await buildApi(deps, { ...defaultControlConfig, admin_token, oidc_issuer: issuer.issuer, oidc_audience: 'iris' });
  url = await api.listen({ port: 0, host: '127.0.0.1' });
});
afterAll(async () => {
  await browser?.close();
  await api?.close();
  await issuer?.close();
});

async function open(): Promise<{ page: Page; errors: string[]; close(): Promise<void> }> {
  const context = await browser.newContext();
  const page = await context.newPage();
  const errors: string[] = [];
  page.on('pageerror', (error) => errors.push(String(error)));
  page.on('console', (message) => message.type() === 'error' && errors.push(message.text()));
  await page.goto(`${url}/docs`);
  await page.locator('#operations details').first().waitFor();
  return { page, errors, close: () => context.close() };
}
/** Fills in one call and sends it; what the page shows of the answer. */
async function send(page: Page, method: string, path: string, { body, ...fields }: Record<string, string> = {}): Promise<string> {
  const box = page
    .locator('#operations > details')
    .filter({ has: page.locator('summary > .method', { hasText: new RegExp(`^${method}$`) }) })
    .filter({ has: page.locator('summary > code', { hasText: new RegExp(`^${path.replaceAll(/[{}]/g, '\\$&')}$`) }) });
  if ((await box.getAttribute('open')) === null) await box.locator('> summary').click();
  for (const [name, value] of Object.entries(fields)) await box.locator('label', { hasText: name }).locator('input').fill(value);
  if (body !== undefined) await box.locator('> textarea').fill(body);
  const shown = box.locator('> pre');
  await shown.evaluate((node) => {
    node.textContent = '';
  });
  await box.getByRole('button', { name: 'Send' }).click();
  await shown.filter({ hasText: /\S/ }).waitFor();
  return (await shown.textContent())!;
}

test('an operator signs in at the issuer and makes calls; who did it stands in the audit, and nothing of it stays in the address', async () => {
  const { page, errors, close } = await open();
  expect(await page.locator('#operations > details').count()).toBeGreaterThan(25);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('Signed in', { exact: true }).waitFor();
  expect(page.url()).toBe(`${url}/docs`);
  expect(await send(page, 'POST', '/v1/tenants', { body: '{"name":"<b>By hand</b>"}' })).toMatch(/^201 /);
  const [tenant] = await store.tenants.list({ limit: 1 });
  expect(await store.audit.list(tenant!.tenant_id, 1)).toMatchObject([{ actor: 'oidc:ada', action: 'tenant.create' }]);
  const shown = await send(page, 'GET', '/v1/tenants/{tenant_id}', { tenant_id: tenant!.tenant_id });
  expect(shown).toMatch(/^200 /);
  expect(JSON.parse(shown.slice(shown.indexOf('\n')))).toMatchObject({ name: '<b>By hand</b>' });
  expect(errors).toEqual([]);
  await close();
});

test('a code that was not asked for here signs nobody in; without a token calls are refused, with one that was typed in they are made', async () => {
  const { page, close } = await open();
  await page.goto(`${url}/docs?code=made-up&state=of-somebody`);
  await page.getByText('Not signed in', { exact: false }).waitFor();
  expect(page.url()).toBe(`${url}/docs`);
  expect(await page.locator('#token').inputValue()).toBe('');
  expect(await send(page, 'GET', '/v1/tenants')).toMatch(/^401 /);
  await page.locator('#token').fill(admin_token);
  expect(await send(page, 'GET', '/v1/tenants')).toMatch(/^200 /);
  await close();
});
