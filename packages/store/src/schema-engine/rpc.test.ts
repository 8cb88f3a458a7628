import { expect, test } from '@jest/globals';
import { EnginePanic } from './engine.js';
import { serveRpc } from './rpc.js';

async function* lines(...requests: unknown[]): AsyncIterable<string> {
  for (const request of requests) yield typeof request === 'string' ? request : JSON.stringify(request);
}
const request = (id: number, method: string, params: unknown = {}) => ({ id, jsonrpc: '2.0', method, params });

async function answers(engine: Parameters<typeof serveRpc>[1], ...requests: unknown[]): Promise<unknown[]> {
  const sent: unknown[] = [];
  await serveRpc(lines(...requests), engine, (line) => sent.push(JSON.parse(line)));
  return sent;
}

test('one answer per request, in order; nothing for what is no request', async () => {
  const engine = async (method: string, params: unknown) => ({ method, params });
  const sent = await answers(engine, request(1, 'a', { x: 1 }), 'no json', '', { id: 7, result: {} }, request(2, 'b'));
  expect(sent).toEqual([
    { jsonrpc: '2.0', id: 1, result: { method: 'a', params: { x: 1 } } },
    { jsonrpc: '2.0', id: 2, result: { method: 'b', params: {} } },
  ]);
});

test('nothing to say is null', async () => {
  expect(await answers(async () => undefined, request(1, 'reset'))).toEqual([{ jsonrpc: '2.0', id: 1, result: null }]);
});

test('a failure keeps its code, and the next request is served', async () => {
  const engine = async (method: string) => {
    if (method === 'a') throw Object.assign(new Error('no table'), { code: 'P3018' });
    return 1;
  };
  const sent = await answers(engine, request(1, 'a'), request(2, 'b'));
  const data = { is_panic: false, message: 'no table', meta: {}, error_code: 'P3018' };
  expect(sent).toEqual([
    { jsonrpc: '2.0', id: 1, error: { code: 4466, message: 'An error happened. Check the data field for details.', data } },
    { jsonrpc: '2.0', id: 2, result: 1 },
  ]);
});

test('a panic is told and ends the service', async () => {
  const sent: string[] = [];
  const panics = async () => {
    throw new EnginePanic('unwrap on None');
  };
  await expect(serveRpc(lines(request(1, 'diff'), request(2, 'diff')), panics, (line) => sent.push(line))).rejects.toThrow(
    'unwrap on None',
  );
  expect(sent.map((line) => JSON.parse(line).error.data.is_panic)).toEqual([true]);
});

test('diff: what it says is printed before the result, and the configured database gets a folder', async () => {
  const seen: unknown[] = [];
  const engine = async (_method: string, params: unknown) => {
    seen.push(params);
    return { exitCode: 2, stdout: '-- change' };
  };
  const params = { from: { tag: 'schemaDatasource', files: [] }, to: { tag: 'empty' } };
  const sent = await answers(engine, request(5, 'diff', params));
  expect(seen).toEqual([{ from: { ...params.from, configDir: process.cwd() }, to: params.to }]);
  expect(sent).toEqual([
    { jsonrpc: '2.0', id: 1, method: 'print', params: { content: '-- change' } },
    { jsonrpc: '2.0', id: 5, result: { exitCode: 2, stdout: '-- change' } },
  ]);
});
