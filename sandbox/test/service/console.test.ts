import { expect, test } from 'vitest';
import { head, overSocket, parseStatus } from '../../../test/support/helpers/sockets.js';
import { get, readStream, startSandbox } from './support.js';

test('the page is served with a policy that allows only its own files', async () => {
  const { consoleUrl } = await startSandbox();
  const { status, headers, body } = await get(String(consoleUrl));
  expect([status, headers['content-type'], body.slice(0, 15)]).toEqual([
    ...[200, 'text/html; charset=utf-8', '<!doctype html>'],
  ]);
  const policy = String(headers['content-security-policy']);
  for (const directive of [
    "default-src 'none'",
    "script-src 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
  ]) {
    expect(policy).toContain(directive);
  }
  expect(headers).toMatchObject({
    'cache-control': 'no-store',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
  });
  expect(Object.keys(headers).filter((name) => name.startsWith('access-control-'))).toEqual([]);
});

test('the root redirects a browser to the page, and not a merchant', async () => {
  const { baseUrl } = await startSandbox();
  for (const url of [`${baseUrl}/`, `${baseUrl}/console`, `${baseUrl}/console?x`]) {
    const { status, headers } = await get(url, { Accept: 'text/html,*/*' });
    expect([status, headers.location]).toEqual([302, '/console/']);
  }
  expect((await get(`${baseUrl}/`, { Accept: '*/*' })).status).toBe(404);
});

test('the page has no other files', async () => {
  const { baseUrl } = await startSandbox();
  for (const name of ['nothing.js', '..%2fconsole.ts', '../console.ts', 'tsconfig.json', 'a/b.js']) {
    const request = head(`${baseUrl}/console/`, {}, 'GET').replace('/console/', `/console/${name}`);
    const text = await overSocket(baseUrl, (socket) => socket.write(request));
    expect([name, parseStatus(text)]).toEqual([name, 404]);
  }
});

test('with console: false there is no page, and the service keeps its paths', async () => {
  const sandbox = await startSandbox({ console: false });
  expect(sandbox.consoleUrl).toBeUndefined();
  for (const path of ['/console/', '/console/events', '/']) {
    expect((await get(sandbox.baseUrl + path, { Accept: 'text/html' })).status).toBe(404);
  }
  expect((await get(`${sandbox.baseUrl}/console/`, { Host: 'evil.example' })).status).toBe(421);
});

async function settings(options: object): Promise<unknown> {
  const { messages } = await readStream(await startSandbox(options));
  return messages[0]?.settings;
}

test('the page shows the secrets that were given only on this machine', async () => {
  const given = { apiSecret: 'given', callbackHeaders: { 'X-Token': 'a' } };
  expect(await settings(given)).toMatchObject(given);
  const elsewhere = { host: '0.0.0.0', ...given };
  expect(await settings(elsewhere)).toMatchObject({ apiSecret: null, callbackHeaders: { 'X-Token': '…' } });
  expect(await settings({ host: '0.0.0.0' })).toMatchObject({ apiSecret: 'sandbox-secret' });
});

test('the page does not call a function for callbackUrl', async () => {
  const callbackUrl = () => expect.fail('called');
  expect(await settings({ callbackUrl })).toMatchObject({ callbackUrl: null, hasCallbackUrl: true });
});
