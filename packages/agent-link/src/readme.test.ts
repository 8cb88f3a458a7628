import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, jest, test } from '@jest/globals';
import { WebSocketServer } from 'ws';
import { scriptedGateway } from './testing.js';

const folder = import.meta.dirname;
const example = readFileSync(join(folder, 'examples/weather.ts'), 'utf8');

test('the example of the README is the one that is tested, and short', () => {
  const [, block] = /```ts\n([\s\S]*?)```/.exec(readFileSync(join(folder, '../README.md'), 'utf8')) ?? [];
  expect(block).toBe(example);
  expect(example.trimEnd().split('\n').length).toBeLessThanOrEqual(30);
});

test('the example works as it stands, over a real WebSocket', async () => {
  const gateway = scriptedGateway({
    clock: { now: () => Date.now() },
    carry: (deliver) => void setImmediate(deliver),
    onProcessed(frame) {
      if (frame.type === 'picker.choice') {
        expect(frame.payload.choices.map((choice) => choice.value)).toEqual(['oslo', 'rome']);
        gateway.tell({ type: 'picker.select', payload: { picker_id: frame.payload.picker_id, value: 'rome' } });
      }
      if (frame.type === 'turn.end') ended();
    },
  });
  let ended: () => void = () => {};
  const nextEnd = () =>
    new Promise<void>((resolve) => {
      ended = resolve;
    });
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0, path: '/agent' });
  await new Promise((resolve) => server.once('listening', resolve));
  let token: string | undefined;
  server.on('connection', (socket, request) => {
    token = request.headers.authorization;
    // The scripted gateway's own net carries between this socket and its script.
    const inner = gateway.net.connect(
      '',
      { token: '', subprotocol: '' },
      { open: () => {}, message: (text) => socket.send(text), closed: (code) => socket.close(code) },
    );
    socket.on('message', (data) => inner.send(data.toString()));
    socket.on('close', () => inner.close(1000, ''));
  });

  process.env.IRIS_GATEWAY_URL = `ws://127.0.0.1:${(server.address() as AddressInfo).port}/agent`;
  process.env.IRIS_AGENT_TOKEN = 'from-the-environment';
  // Its last line waits until the agent has ended, so the module is done only then.
  const said = jest.spyOn(console, 'log').mockImplementation(() => {});
  const module = import('./examples/weather.js');

  const first = nextEnd();
  const known = gateway.startTurn(' Oslo ');
  await first;
  const second = nextEnd();
  const asked = gateway.startTurn('Is it nice outside?');
  await second;
  const texts = (turn_id: string) => [...gateway.turns.get(turn_id)!.messages.values()].map((message) => message.text);
  expect(texts(known)).toEqual(['In **oslo**: −3 °C, snow.']);
  expect(texts(asked)).toEqual(['In **rome**: 14 °C, sun.']);
  expect([...gateway.turns.get(asked)!.tools.values()]).toEqual([{ name: 'thermometer', ok: true }]);
  expect(token).toBe('Bearer from-the-environment');
  expect(gateway.faults).toEqual([]);

  gateway.close(4409);
  await module;
  expect(said.mock.calls).toEqual([['ended:', 'replaced']]);
  said.mockRestore();
  server.close();
});
