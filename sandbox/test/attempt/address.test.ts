import { expect, test } from 'vitest';
import { baseUrlAt, isLoopback } from '../../src/attempt/address.js';

test('the URL of a server names an address that can be reached', () => {
  expect(baseUrlAt('0.0.0.0', 80)).toBe('http://127.0.0.1:80');
  expect(baseUrlAt('::', 80)).toBe('http://[::1]:80');
  expect(baseUrlAt('::1', 443, 'https')).toBe('https://[::1]:443');
  expect(baseUrlAt('localhost', 80)).toBe('http://localhost:80');
  expect(baseUrlAt('192.0.2.1', 80)).toBe('http://192.0.2.1:80');
});

test('only an address of the loopback counts as one, whatever a name begins with', () => {
  const hosts = ['localhost', '::1', '[::1]', '127.0.0.1', '127.255.0.9'];
  expect(hosts.filter((host) => !isLoopback(host))).toEqual([]);
  const others = ['127.example.com', '127.0.0.1.example.com', '10.0.0.127', '0.0.0.0', '::', '::2', 'example.com', ''];
  expect(others.filter(isLoopback)).toEqual([]);
});
