import { expect, test } from 'vitest';
import type { TransferSandbox } from 'transfer-sandbox';
import { refuseHost } from '../../src/service/origin-guard.js';
import { post } from '../../../test/support/helpers/post.js';
import { overSocket, parseStatus } from '../../../test/support/helpers/sockets.js';
import { get, readStream, startSandbox } from './support.js';

test.each([
  ['evil.example', 421],
  ['evil.example:80', 421],
  ['127.0.0.1.evil.example', 421],
  ['evil@127.0.0.1', 421],
  ['localhost.evil.example', 421],
  ['127.0.0.1:4010', 404],
  ['192.0.2.7', 404],
  ['[::1]:4010', 404],
  ['LOCALHOST:4010', 404],
  ['sandbox.localhost', 404],
])('the sandbox responds to the Host %s with %d on a path of the service', async (host, status) => {
  const sandbox = await startSandbox();
  expect((await get(`${sandbox.baseUrl}/transactions/x`, { Host: host })).status).toBe(status);
  expect((await get(String(sandbox.consoleUrl), { Host: host })).status).toBe(status === 404 ? 200 : status);
});

test('an HTTP/1.0 request without a Host is refused', async () => {
  const { baseUrl } = await startSandbox();
  const text = await overSocket(baseUrl, (socket) => socket.write('GET /transactions/x HTTP/1.0\r\n\r\n'));
  expect(parseStatus(text)).toBe(421);
});

test('the Host may be the `host` of the sandbox', () => {
  const named = (host: string) => refuseHost({ headers: { host } }, 'Sandbox.internal');
  expect(named('sandbox.internal:4010')).toBeUndefined();
  expect(named('other.internal')).toMatchObject({ status: 421 });
});

test('a sandbox that other machines reach accepts any Host on its service, but not on its console', async () => {
  const sandbox = await startSandbox({ host: '0.0.0.0' });
  expect((await get(`${sandbox.baseUrl}/transactions/x`, { Host: 'sandbox' })).status).toBe(404);
  expect((await get(String(sandbox.consoleUrl), { Host: 'sandbox' })).status).toBe(421);
});

test.each([
  [{ 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'no-cors' }, 403],
  [{ 'Sec-Fetch-Site': 'same-site', 'Sec-Fetch-Mode': 'cors' }, 403],
  [{ 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'navigate' }, 200],
  [{ 'Sec-Fetch-Site': 'same-origin', 'Sec-Fetch-Mode': 'cors' }, 200],
  [{ 'Sec-Fetch-Site': 'none', 'Sec-Fetch-Mode': 'navigate' }, 200],
] as [Record<string, string>, number][])('the page responds to %j with %d', async (headers, status) => {
  const { consoleUrl } = await startSandbox();
  expect((await get(String(consoleUrl), headers)).status).toBe(status);
});

test.each<[string, Record<string, string | undefined>, number]>([
  ['of a page of another site', { 'Sec-Fetch-Site': 'cross-site' }, 403],
  ['of another port of this machine', { 'Sec-Fetch-Site': 'same-site' }, 403],
  ['of a bookmark', { 'Sec-Fetch-Site': 'none' }, 403],
  ['of the console', { 'Sec-Fetch-Site': 'same-origin' }, 204],
  ['with the Origin of another site', { Origin: 'http://evil.example' }, 403],
  ['of a page without an origin', { Origin: 'null' }, 403],
  ['of no browser', {}, 204],
  ['as a form sends it', { 'Content-Type': 'text/plain' }, 415],
  ['without a type', { 'Content-Type': undefined }, 415],
])('a write %s (%j) gets %d', async (_of, headers, status) => {
  const sandbox = await startSandbox({ clock: 'manual' });
  const before = await timeOf(sandbox);
  const sent = await post(`${String(sandbox.consoleUrl)}advance`, { ms: 5_000 }, { headers });
  expect(sent.status).toBe(status);
  expect((await timeOf(sandbox)) - before).toBe(status === 204 ? 5_000 : 0);
});

test('a write with the Origin of the console is accepted if the browser sends no Sec-Fetch-Site', async () => {
  const { baseUrl, consoleUrl } = await startSandbox({ clock: 'manual' });
  const sent = await post(`${String(consoleUrl)}advance`, { ms: 1 }, { headers: { Origin: baseUrl } });
  expect(sent.status).toBe(204);
});

async function timeOf(sandbox: TransferSandbox): Promise<number> {
  const { messages, leave } = await readStream(sandbox);
  leave();
  return messages[0]?.clock.nowMs ?? NaN;
}
