import { isDeepStrictEqual } from 'node:util';
import { systemClock } from '@iris/runtime';
import { serveAutopush, serveFakes, cluster as startCluster } from '@iris/testkit';
import { startWeb, webLink } from '@iris/web';
import { startFirefox } from './firefox.mjs';

const lane = { chat_id: 'android:default', thread_id: null };
const within_ms = 30_000;

/** @returns whether every step came out as it should; each is printed */
export async function webPush(path) {
  const undo = [];
  const started = (one) => {
    undo.push(() => one.close());
    return one;
  };
  const step = async (what, run) => {
    const begun = Date.now();
    await run();
    console.log(`ok    ${what} (${Date.now() - begun} ms)`);
  };
  try {
    const fakes = started(await serveFakes(systemClock));
    const autopush = started(await serveAutopush({ webpush: fakes.webpush, base: `${fakes.base}/webpush` }));
    const web = started(await startWeb({ host: '127.0.0.1', port: 0 }));
    const set = Object.fromEntries(Object.entries(fakes.settings).map(([name, value]) => [name, String(value)]));
    const world = started(
      await startCluster({ edges: 1, sessions: 1, workers: 0, set: { ...set, edge_origins: `http://127.0.0.1:${web.port}` } }),
    );
    await world.startWorker({ push_answer_url: world.edges[0].url.replace('ws:', 'http:').replace(/\/ws$/, '/push/answer') });
    const tenant = await world.tenant();
    const phone = await tenant.join('phone');
    const agent = tenant.agent();
    await agent.connect();
    const preferences = {
      'dom.push.serverURL': autopush.url,
      'dom.push.testing.allowInsecureServerURL': true,
      // As if the person had said yes.
      'permissions.default.desktop-notification': 1,
      // Notifications are windows of its own, which can be clicked without a desktop.
      'alerts.useSystemBackend': false,
    };
    const firefox = started(await startFirefox({ path, preferences }));
    await tell({ step, fakes, autopush, web, world, tenant, phone, agent, firefox });
    console.log('web push in Firefox: all well');
    return true;
  } catch (error) {
    console.log(`FAILED  ${error.stack}`);
    return false;
  } finally {
    for (const close of undo.reverse()) await close();
  }
}

async function tell({ step, fakes, autopush, web, world, tenant, phone, agent, firefox }) {
  const { store } = world;
  const origin = `http://127.0.0.1:${web.port}`;
  const targets = () => store.pushTargets.list(tenant.tenant_id);
  const shown = () =>
    firefox.run(`async () => {
      const registration = await navigator.serviceWorker.getRegistration('/');
      return (await registration.getNotifications()).map(({ title, body, actions }) => ({ title, body, actions: actions.map(({ action }) => action) }));
    }`);
  const showing = (wanted) =>
    until(
      async () => isDeepStrictEqual(await shown(), wanted),
      async () => `shown: ${JSON.stringify(await shown())}`,
    );
  const cron = (message_id, text) => agent.say('message', { message_id, role: 'cron', text }, lane);
  const seen = (text) => phone.next((frame) => frame.payload.text === text);

  await step('the page subscribes with the gateway’s key and registers', async () => {
    await firefox.open(webLink(`${origin}/`, world.edges[0].url, tenant.device_token));
    await until(
      async () => (await targets()).length === 1,
      async () =>
        `heard of the browser: ${JSON.stringify(autopush.heard)}; the page: ${await firefox.run('async () => document.body.innerText')}`,
    );
    const [target] = await targets();
    must(target.kind === 'webpush' && target.address.startsWith(fakes.base) && target.keys?.p256dh, JSON.stringify(target));
    const { key } = autopush.heard.find(({ messageType }) => messageType === 'register');
    must(Buffer.from(key, 'base64').equals(Buffer.from(fakes.webpush.vapid.public_key, 'base64url')), `registered with ${key}`);
  });
  const [{ device_id }] = await targets();

  await step('with the page gone a message is pushed: decrypted and shown', async () => {
    // Of the same origin, and no client.
    await firefox.open(`${origin}/nothing-here`);
    cron('one', 'good morning');
    await showing([{ title: 'Default', body: 'good morning', actions: [] }]);
    await until(
      () => autopush.heard.some(({ messageType, updates }) => messageType === 'ack' && updates[0].code === 100),
      () => `not acknowledged: ${JSON.stringify(autopush.heard)}`,
    );
    await until(
      async () => (await store.pushLedger.explain(tenant.tenant_id, device_id, { limit: 1 }))[0]?.state === 'sent',
      () => 'the ledger does not say so',
    );
    const [row] = await store.pushLedger.explain(tenant.tenant_id, device_id, { limit: 1 });
    must(row.answer === '201' && row.provider === 'webpush', JSON.stringify(row));
  });

  await step('a newer message of the lane takes its place', async () => {
    cron('two', 'good evening');
    await showing([{ title: 'Default', body: 'good evening', actions: [] }]);
  });

  await step('read on the phone: it is taken back', async () => {
    const { payload } = await seen('good evening');
    phone.say('read.receipt', { message_id: payload.message_id }, lane);
    await showing([]);
  });

  await step('a question is answered by a button of its notification', async () => {
    await phone.send('may I?');
    const turn = await agent.turn();
    const choices = [
      { value: 'yes', label: 'Yes' },
      { value: 'no', label: 'No' },
    ];
    turn.picker('confirm', { choices, title: 'Sure?' });
    await showing([{ title: 'Sure?', body: 'Default', actions: ['yes', 'no'] }]);
    await click(firefox, 'Sure?', 'yes');
    const { payload } = await phone.next('picker.closed');
    must(payload.value === 'yes', JSON.stringify(payload));
    await showing([]);
    turn.end();
    await phone.next('agent.idle');
  });

  await step('a click on a notification opens the page, which comes online', async () => {
    const before = Date.now();
    cron('three', 'come here');
    await showing([{ title: 'Default', body: 'come here', actions: [] }]);
    // Any page of the origin would be shown instead of a new one.
    await firefox.open('about:blank');
    await click(firefox, 'Default');
    const opened = async () => {
      const { contexts } = await firefox.ask('browsingContext.getTree', {});
      return contexts.some(({ url, context }) => context !== firefox.context && url.startsWith(`${origin}/`));
    };
    await until(opened, () => 'no page was opened');
    const here = async () => (await world.store.devices.get(tenant.tenant_id, device_id)).last_seen_at > before;
    await until(here, () => 'it did not come online');
  });
}

/** Firefox draws no buttons where the desktop does not; what a button does is asked of the same listener. */
async function click(firefox, title, action) {
  const pressed = `async () => {
    const alert = [...Services.wm.getEnumerator('alert:alert')].findLast((one) => one.arguments[1] === ${JSON.stringify(title)} && !one.closed);
    if (alert === undefined) return false;
    const action = ${JSON.stringify(action ?? null)};
    const button = action && { QueryInterface: ChromeUtils.generateQI(['nsIAlertAction']), action, title: action, iconURL: '', windowsSystemActivationType: false, opaqueRelaunchData: '' };
    if (button) alert.gAlertListener.observe(button, 'alertclickcallback', alert.gAlertCookie);
    else alert.onAlertClick();
    return true;
  }`;
  const window = await firefox.chrome();
  await until(
    () => firefox.run(pressed, window),
    () => `nothing to click: ${title}`,
  );
}

async function until(found, what) {
  const give_up = Date.now() + within_ms;
  while (!(await found())) {
    if (Date.now() > give_up) throw new Error(`not within ${within_ms} ms: ${await what()}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

function must(holds, what) {
  if (!holds) throw new Error(what);
}
