import type { LookupAddress, LookupOptions } from 'node:dns';
import { expect, test } from '@jest/globals';
import { type Gate, gate, OutOfReach } from './reach.js';

const closed = { private_addresses: false };
const admits = (door: Gate, url: string): boolean => {
  try {
    door.admit(new URL(url));
    return true;
  } catch (error) {
    expect(error).toBeInstanceOf(OutOfReach);
    return false;
  }
};

test.each([
  '127.0.0.1',
  '127.1',
  '2130706433',
  '0x7f.1',
  '0.0.0.0',
  '10.1.2.3',
  '172.16.0.1',
  '172.31.255.255',
  '192.168.1.1',
  '169.254.169.254',
  '100.64.0.1',
  '198.18.0.1',
  '224.0.0.1',
  '255.255.255.255',
  '[::1]',
  '[::]',
  '[::ffff:127.0.0.1]',
  '[::ffff:8.8.8.8]',
  '[fe80::1]',
  '[fd00::1]',
  '[ff02::1]',
  '[64:ff9b::7f00:1]',
  '[2002:7f00:1::]',
  '[2001:db8::1]',
  '[2001::1]',
])('%s is private', (host) => {
  expect(admits(gate(closed), `http://${host}/v1`)).toBe(false);
  expect(admits(gate({ private_addresses: true }), `http://${host}/v1`)).toBe(true);
});

test.each(['8.8.8.8', '172.32.0.1', '1.1.1.1', '[2606:4700:4700::1111]', 'api.example.com'])('%s is not', (host) => {
  expect(admits(gate(closed), `https://${host}/v1`)).toBe(true);
});

test('only listed hosts; ranges open what is private', () => {
  const door = gate({ private_addresses: false, hosts: ['api.example.com', '*.Models.example'], addresses: ['10.1.0.0/16', '::1'] });
  for (const host of ['api.example.com', 'API.example.com', 'api.example.com.', 'a.models.example', '10.1.2.3', '[::1]'])
    expect([host, admits(door, `https://${host}/`)]).toEqual([host, true]);
  for (const host of [
    'example.com',
    'xapi.example.com',
    'api.example.com.evil.test',
    'models.example',
    'evilmodels.example',
    '10.2.0.1',
    '8.8.8.8',
  ])
    expect([host, admits(door, `https://${host}/`)]).toEqual([host, false]);
  expect(() => gate({ private_addresses: false, addresses: ['10.0.0.0/33'] })).toThrow(TypeError);
  expect(() => gate({ private_addresses: false, addresses: ['localhost'] })).toThrow(TypeError);
});

test('no other scheme, no credentials in the address', () => {
  const door = gate({ private_addresses: true });
  for (const url of ['file:///etc/passwd', 'ftp://example.com/', 'http://user:pass@example.com/']) expect(admits(door, url)).toBe(false);
});

const looked = (door: Gate, all: boolean) =>
  new Promise<unknown>((resolve, reject) =>
    door.lookup('model.example', { all }, (error, address) => (error ? reject(error) : resolve(address))),
  );
const answering = (...addresses: string[]) =>
  ((_host: string, _options: LookupOptions, callback: (error: null, addresses: LookupAddress[]) => void) =>
    callback(
      null,
      addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    )) as never;

test('what a name stands for is looked at, all of it', async () => {
  expect(await looked(gate(closed, answering('8.8.8.8')), false)).toBe('8.8.8.8');
  expect(await looked(gate(closed, answering('8.8.8.8', '1.1.1.1')), true)).toHaveLength(2);
  for (const bad of [['127.0.0.1'], ['8.8.8.8', '10.0.0.1'], ['2606:4700:4700::1111', 'fd00::1']])
    await expect(looked(gate(closed, answering(...bad)), true)).rejects.toThrow('private address');
  expect(await looked(gate({ ...closed, addresses: ['10.0.0.0/8'] }, answering('10.0.0.1')), false)).toBe('10.0.0.1');
});
