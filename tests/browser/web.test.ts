/// <reference lib="dom" />
/** The web client in a real browser, against the product as `npm start` brings it up. */
import { randomBytes } from 'node:crypto';
import { freePort } from '@iris/devstack';
import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { type Dev, type Started, starts } from '../system/started.js';
import { startChromium } from './chromium.js';

jest.setTimeout(120_000);

const place = starts();
let started: Started;
let dev: Dev;
let browser: Browser;

beforeAll(async () => {
  started = place.start(place.dir(), ['--port', String(20_000 + ((await freePort()) % 20_000))]);
  [dev, browser] = await Promise.all([started.ready(), startChromium()]);
});
afterAll(async () => {
  await browser?.close();
  await place.close();
});

/** A page of its own browser profile: a device of its own. Console errors fail the test that made them. */
async function open(link = dev.web_url!): Promise<{ page: Page; errors: string[]; close(): Promise<void> }> {
  const context = await browser.newContext();
  const page = await context.newPage();
  const errors: string[] = [];
  page.on('pageerror', (error) => errors.push(String(error)));
  page.on('console', (message) => message.type() === 'error' && errors.push(message.text()));
  await page.goto(link);
  await page.locator('.line.online').waitFor();
  return { page, errors, close: () => context.close() };
}
async function say(page: Page, text: string): Promise<void> {
  await page.getByLabel('Message', { exact: true }).fill(text);
  await page.keyboard.press('Enter');
}
const answer = (page: Page) => page.locator('.message.assistant.done').last();
const idle = (page: Page) => page.locator('.activity').waitFor({ state: 'detached' });

test('the printed link opens a conversation: a message, its ticks, and a streamed answer with reasoning folded above', async () => {
  const { page, errors, close } = await open();
  await say(page, 'hello from the browser');
  await page.locator('.message.user.done', { hasText: 'hello from the browser' }).waitFor();
  await answer(page).waitFor();
  await idle(page);
  await page.locator('.message.user .ticks', { hasText: '✓✓' }).waitFor();
  const reasoning = page.locator('.message.assistant .reasoning').first();
  expect(await reasoning.evaluate((node: HTMLDetailsElement) => node.open)).toBe(false);
  expect(
    await page
      .locator('.message.assistant')
      .first()
      .evaluate((node) => node.firstElementChild?.className),
  ).toBe('reasoning');
  expect(errors).toEqual([]);
  await close();
});

test('the token leaves the address bar, and a reload comes back to the same conversation', async () => {
  const { page, close } = await open();
  expect(page.url()).not.toContain(dev.device_token);
  await say(page, 'still here after a reload?');
  await page.locator('.message.user.done', { hasText: 'still here after a reload?' }).waitFor();
  await page.reload();
  await page.locator('.message.user', { hasText: 'still here after a reload?' }).waitFor();
  expect(await page.locator('.message.user', { hasText: 'still here after a reload?' }).count()).toBe(1);
  await close();
});

test('two browsers see the same messages in the same order', async () => {
  const [one, other] = await Promise.all([open(), open()]);
  for (let i = 0; i < 5; i++) await say(i % 2 === 0 ? one.page : other.page, `/demo echo line ${i}`);
  const texts = async (page: Page) => {
    await page.locator('.message.assistant.done', { hasText: /^line 4/ }).waitFor();
    await idle(page);
    return page.locator('.message.done').evaluateAll((nodes) => nodes.map((node) => (node as HTMLElement).dataset.messageId));
  };
  const [first, second] = [await texts(one.page), await texts(other.page)];
  expect(first.slice(-10)).toEqual(second.slice(-10));
  expect(new Set(first).size).toBe(first.length);
  await Promise.all([one.close(), other.close()]);
});

test('text from others cannot run, load or submit anything', async () => {
  const { page, errors, close } = await open();
  const attack = [
    '<img src=x onerror="window.hacked=1">',
    '<script>window.hacked=2</script>',
    '[link](javascript:window.hacked=3)',
    '<svg onload="window.hacked=4"></svg>',
    '<form action="https://example.org"><button>go</button></form>',
    '<iframe srcdoc="<script>parent.hacked=5</script>"></iframe>',
    'the end of it',
  ].join('\n\n');
  await say(page, `/demo echo ${attack}`);
  const row = page.locator('.message.assistant.done', { hasText: 'the end of it' });
  await row.waitFor();
  expect(await page.evaluate(() => (window as unknown as { hacked?: number }).hacked)).toBeUndefined();
  expect(await row.locator('.text :is(img, script, svg, form, iframe, button)').count()).toBe(0);
  expect(await row.locator('a[href^="javascript:"]').count()).toBe(0);
  // Tags are shown, as text.
  expect(await row.locator('.text').textContent()).toContain('<script>');
  expect(errors).toEqual([]);
  await close();
});

test('a picker is answered with a click, and a channel is made and talked in', async () => {
  const { page, errors, close } = await open();
  await page.getByLabel('Name of a new channel').fill('Garden');
  await page.getByLabel('Create the channel').click();
  await page.locator('.channel.open', { hasText: 'Garden' }).waitFor();
  await say(page, '/demo choice');
  await page.locator('fieldset.picker .choices button').first().click();
  await page.locator('.picker.closed').waitFor();
  await idle(page);
  expect(errors).toEqual([]);
  await close();
});

test('stop ends a long answer', async () => {
  const { page, close } = await open();
  await say(page, '/demo slow');
  await page.getByRole('button', { name: 'Stop' }).click();
  await idle(page);
  await close();
});

test('a lost line is said, and what was typed meanwhile goes out once when it is back', async () => {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.addInitScript(() => {
    const Real = window.WebSocket;
    const opened: WebSocket[] = [];
    Object.assign(window, { opened });
    window.WebSocket = class extends Real {
      constructor(url: string | URL) {
        super(url);
        opened.push(this);
      }
    };
  });
  await page.goto(dev.web_url!);
  await page.locator('.line.online').waitFor();
  await page.evaluate(() => (window as unknown as { opened: WebSocket[] }).opened.at(-1)!.close());
  await page.locator('.line.waiting').waitFor();
  await say(page, 'typed in a tunnel');
  await page.locator('.message.user.sending', { hasText: 'typed in a tunnel' }).waitFor();
  await page.locator('.message.user.done', { hasText: 'typed in a tunnel' }).waitFor();
  expect(await page.locator('.message.user', { hasText: 'typed in a tunnel' }).count()).toBe(1);
  await context.close();
});

test('PSH9 PSH11: the service worker shows a push once, replaces it by a newer one of its lane, and takes it back', async () => {
  const { page, errors, close } = await open();
  await page.context().grantPermissions(['notifications'], { origin: new URL(dev.web_url!).origin });
  const devtools = await page.context().newCDPSession(page);
  const registered = new Promise<string>((resolve) => {
    devtools.on(
      'ServiceWorker.workerRegistrationUpdated',
      ({ registrations }) => registrations[0] && resolve(registrations[0].registrationId),
    );
  });
  await devtools.send('ServiceWorker.enable');
  await page.evaluate(async () => {
    await navigator.serviceWorker.register(new URL('sw.js', location.href));
    await navigator.serviceWorker.ready;
  });
  const registrationId = await registered;
  const origin = new URL(dev.web_url!).origin;
  const deliver = (payload: Record<string, string>) =>
    devtools.send('ServiceWorker.deliverPushMessage', { origin, registrationId, data: JSON.stringify(payload) });
  const shown = () =>
    page.evaluate(async () => {
      const registration = await navigator.serviceWorker.ready;
      return (await registration.getNotifications()).map(({ title, body, tag }) => [title, body, tag]);
    });
  const until = async (wanted: string[][]) => {
    let now = await shown();
    for (let i = 0; i < 1_000 && JSON.stringify([...now].sort()) !== JSON.stringify([...wanted].sort()); i++) {
      await page.waitForTimeout(50);
      now = await shown();
    }
    expect([...now].sort()).toEqual([...wanted].sort());
  };
  const push = { type: 'push', tag: 'lane', title: 'Default', body: 'one', cursor: '5' };
  await deliver(push);
  await until([['Default', 'one', 'lane']]);
  await deliver(push);
  await deliver({ ...push, body: 'two', cursor: '6' });
  await until([['Default', 'two', 'lane']]);
  await deliver({ ...push, tag: 'other', title: 'Ops', body: 'three', cursor: '7' });
  await until([
    ['Default', 'two', 'lane'],
    ['Ops', 'three', 'other'],
  ]);
  await deliver({ type: 'withdraw', tag: 'lane', cursor: '6' });
  await until([['Ops', 'three', 'other']]);
  expect(errors).toEqual([]);
  await close();
});

test('without a link the page asks for a gateway and a token', async () => {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(new URL('/', dev.web_url!).href);
  await page.getByLabel('Gateway').waitFor();
  await context.close();
});

test('a picture is picked, dropped or pasted, goes up, and is seen on both devices: its preview at once, the whole when asked for', async () => {
  const [one, other] = await Promise.all([open(), open()]);
  const { default: sharp } = await import('sharp');
  const raw = { width: 900, height: 600, channels: 3 } as const;
  const png = await sharp(randomBytes(900 * 600 * 3), { raw })
    .png()
    .toBuffer();
  const bring = (kind: 'drop' | 'paste', to: string) =>
    one.page.locator(to).evaluate(
      async (target, { kind, data }) => {
        const transfer = new DataTransfer();
        const bytes = Uint8Array.from(atob(data), (one) => one.charCodeAt(0));
        transfer.items.add(new File([bytes], `${kind}.png`, { type: 'image/png' }));
        const init = { bubbles: true, cancelable: true };
        const event =
          kind === 'drop'
            ? new DragEvent('drop', { ...init, dataTransfer: transfer })
            : new ClipboardEvent('paste', { ...init, clipboardData: transfer });
        target.dispatchEvent(event);
        // A browser would open the file in the place of the page.
        return event.defaultPrevented;
      },
      { kind, data: png.toString('base64') },
    );
  // Every state that the list of files shows, as it shows it.
  await one.page.evaluate(() => {
    const seen: { name: string; value: number; max: number }[] = [];
    Object.assign(globalThis, { seen });
    new MutationObserver(() => {
      for (const bar of document.querySelectorAll<HTMLProgressElement>('.pending progress'))
        seen.push({ name: bar.parentElement?.querySelector('span')?.textContent ?? '', value: bar.value, max: bar.max });
    }).observe(document.body, { subtree: true, childList: true, attributes: true });
  });
  await one.page.getByLabel('Attach a file').setInputFiles({ name: 'picked.png', mimeType: 'image/png', buffer: png });
  expect(await bring('drop', '.conversation')).toBe(true);
  await bring('paste', 'form.composer textarea');
  await one.page.locator('.pending .stored').nth(2).waitFor();
  const seen = await one.page.evaluate(() => (globalThis as never as { seen: { name: string; value: number; max: number }[] }).seen);
  for (const name of ['picked.png', 'drop.png', 'paste.png']) {
    const bars = seen.filter((bar) => bar.name === name);
    const values = bars.map(({ value }) => value);
    expect(new Set(bars.map(({ max }) => max))).toEqual(new Set([png.length]));
    expect(values).toEqual([...values].sort((a, b) => a - b));
    // It stands somewhere between nothing and all, more than once.
    expect(new Set(values.filter((value) => value > 0 && value < png.length)).size).toBeGreaterThan(1);
  }
  // What an image shows first and then, on both devices.
  for (const { page } of [one, other])
    await page.evaluate(() => {
      const sizes: string[] = [];
      Object.assign(globalThis, { sizes });
      document.addEventListener(
        'load',
        ({ target }) => target instanceof HTMLImageElement && sizes.push(`${target.naturalWidth}×${target.naturalHeight}`),
        true,
      );
    });
  await one.page.getByRole('button', { name: 'Send' }).click();
  for (const { page } of [one, other]) {
    const sizes = () => page.evaluate(() => (globalThis as never as { sizes: string[] }).sizes);
    const pictures = page.locator('.message.user.done .picture img:not(.blurred)');
    await pictures.nth(2).waitFor();
    expect(await pictures.first().evaluate((image: HTMLImageElement) => image.decode().then(() => image.naturalWidth))).toBe(512);
    // A likeness that came with the message stood there before the preview was pulled.
    expect((await sizes())[0]).toMatch(/^32×2\d$/);
    await page.locator('.picture').first().click();
    const whole = page.locator('.picture.whole img:not(.blurred)');
    await whole.waitFor();
    await page.waitForFunction(() => document.querySelector<HTMLImageElement>('.picture.whole img:not(.blurred)')?.naturalWidth === 900);
  }
  expect([...one.errors, ...other.errors]).toEqual([]);
  await Promise.all([one.close(), other.close()]);
});
