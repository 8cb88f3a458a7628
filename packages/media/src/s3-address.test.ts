import { expect, test } from '@jest/globals';
import { bodyIsSafe, s3Address } from './s3-address.js';

test('all of it', () => {
  expect(s3Address('http://key:sec%2Fret%40@127.0.0.1:7070/iris?region=eu-1')).toEqual({
    endpoint: 'http://127.0.0.1:7070',
    region: 'eu-1',
    bucket: 'iris',
    access: 'key',
    secret: 'sec/ret@',
  });
  expect(s3Address('https://k:s@s3.example.com/b/')).toMatchObject({
    endpoint: 'https://s3.example.com',
    region: 'us-east-1',
    bucket: 'b',
  });
});

test.each(['ftp://k:s@h/b', 'http://k:s@h/', 'http://k:s@h/b/c', 'http://h/b', 'http://k@h/b', 'nonsense'])('%s is refused', (url) => {
  expect(() => s3Address(url)).toThrow();
});

test('bodies go unsigned where nobody on the way can change them', () => {
  for (const safe of ['https://s3.example.com', 'http://127.0.0.1:9', 'http://localhost:9', 'http://[::1]:9'])
    expect(bodyIsSafe(safe)).toBe(true);
  for (const open of ['http://s3:8333', 'http://127.0.0.1.example.com', 'http://10.0.0.1', 'http://localhost.example.com'])
    expect(bodyIsSafe(open)).toBe(false);
});
