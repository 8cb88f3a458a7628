import { afterEach, describe, expect, test } from '@jest/globals';
import { type Health, serveHealth } from './health.js';
import { telemetry } from './telemetry.js';
import { manualClock } from './testing.js';

const open: Health[] = [];
afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
});
async function serve(metrics?: () => Promise<string>) {
  const clock = manualClock();
  const health = await serveHealth({ host: '127.0.0.1', port: 0, clock, ...(metrics === undefined ? {} : { metrics }) });
  open.push(health);
  const get = async (path: string, method = 'GET') => {
    const response = await fetch(`http://127.0.0.1:${health.port}${path}`, { method });
    return { status: response.status, text: await response.text() };
  };
  return { health, clock, get };
}

describe('health', () => {
  test('alive at once, ready only when told and while every check holds', async () => {
    const { health, get } = await serve();
    let redis = true;
    health.check('redis', () => redis);
    expect((await get('/healthz')).status).toBe(200);
    expect((await get('/readyz')).status).toBe(503);
    health.setReady(true);
    expect(await get('/readyz')).toEqual({ status: 200, text: '{"ready":true,"started":true,"checks":{"redis":true}}\n' });
    redis = false;
    expect((await get('/readyz')).status).toBe(503);
    expect((await get('/healthz')).status).toBe(200);
  });

  test('a check that throws or rejects has failed; one taken away counts no more', async () => {
    const { health, get } = await serve();
    health.setReady(true);
    const end = health.check('throws', () => {
      throw new Error('no');
    });
    health.check('fine', () => true);
    expect(JSON.parse((await get('/readyz')).text)).toMatchObject({ ready: false, checks: { throws: false, fine: true } });
    end();
    expect((await get('/readyz')).status).toBe(200);
  });

  test('a check that never answers has failed after 2 s', async () => {
    const { health, clock, get } = await serve();
    health.setReady(true);
    let asked = () => {};
    const wasAsked = new Promise<void>((resolve) => {
      asked = resolve;
    });
    health.check('hangs', () => {
      asked();
      return new Promise<boolean>(() => {});
    });
    const answer = get('/readyz');
    await wasAsked;
    await clock.advance(2_000);
    expect(JSON.parse((await answer).text)).toMatchObject({ ready: false, checks: { hangs: false } });
  });

  test('other paths and methods', async () => {
    const { get } = await serve();
    expect((await get('/metrics')).status).toBe(404);
    expect((await get('/healthz?x=1')).status).toBe(200);
    expect((await get('/healthz', 'POST')).status).toBe(405);
  });

  test('a port that is taken is an error', async () => {
    const { health, clock } = await serve();
    await expect(serveHealth({ host: '127.0.0.1', port: health.port, clock })).rejects.toThrow(/EADDRINUSE/);
  });

  test('metrics are served beside it', async () => {
    const { meter, scrape, close } = telemetry({ service: 'edge', instance: 'e1' });
    const { get } = await serve(scrape);
    meter.counter('iris_edge_errors_total').add(2, { code: 'auth' });
    expect((await get('/metrics')).text).toContain('iris_edge_errors_total{code="auth"} 2');
    await close();
  });
});
