import { expect, test } from 'vitest';
import { transferService } from 'transfer-callbacks/client';
import type { TransferSandbox } from 'transfer-sandbox';
import { later } from '../../../test/core/support.js';
import { post } from '../../../test/support/helpers/post.js';
import { head, overSocket, parseStatus } from '../../../test/support/helpers/sockets.js';
import { create, get, query, readStream, startMerchant, startReceiver, startSandbox } from './support.js';

test('the page is served with a policy that allows only its own files', async () => {
  const { consoleUrl } = await startSandbox();
  const { status, headers, body } = await get(String(consoleUrl));
  expect([status, headers['content-type'], body.slice(0, 15)]).toEqual([
    ...[200, 'text/html; charset=utf-8', '<!doctype html>'],
  ]);
  expect(String(headers['content-security-policy']).split('; ')).toEqual(
    expect.arrayContaining([
      ...["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"],
      ...["form-action 'none'", "require-trusted-types-for 'script'"],
    ]),
  );
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

test.each<[string, unknown, number, string]>([
  ['advance', '{', 400, 'not a JSON object'],
  ['advance', 'null', 400, 'not a JSON object'],
  ['advance', { ms: -1 }, 409, 'Expected `ms` to be a whole number'],
  ['resend', {}, 409, 'Expected `id` to be a string'],
  ['resend', { id: 'unknown' }, 409, 'of a transfer that is final'],
  ['speed', { speed: -1 }, 409, 'Expected `speed` to be a whole number'],
  ['speed', { speed: 10 }, 409, 'Expected `speed` to be left as it is, since the clock is manual'],
  ['forge', { id: 'unknown', url: 'http://127.0.0.1:1/', body: '' }, 409, 'a URL of the origin of the callback URL'],
  ['advance', `{"x":"${'x'.repeat(102_400)}"}`, 413, 'longer than'],
])('an invalid write to %s is refused with the reason (%#)', async (action, body, status, reason) => {
  const { consoleUrl } = await startSandbox({ clock: 'manual' });
  const sent = await post(`${String(consoleUrl)}${action}`, body);
  expect([sent.status, JSON.parse(sent.body)]).toMatchObject([
    status,
    { error: true, statusCode: status, message: expect.stringContaining(reason) as string },
  ]);
});

test('an interrupted write has no effect on the sandbox', async () => {
  const { baseUrl, consoleUrl } = await startSandbox({ clock: 'manual' });
  const headers = { 'Content-Type': 'application/json', 'Content-Length': 100 };
  await overSocket(baseUrl, (socket) => socket.end(`${head(`${String(consoleUrl)}advance`, headers)}{`));
  expect((await get(String(consoleUrl))).status).toBe(200);
});

test.each([
  ['advance', 'GET', 'POST'],
  ['events', 'POST', 'GET'],
])('the response of /console/%s to %s names the allowed method', async (path, method, allow) => {
  const { consoleUrl } = await startSandbox();
  const { status, headers } = await get(String(consoleUrl) + path, {}, method);
  expect([status, headers.allow]).toEqual([405, allow]);
});

/** Sends a forgery for the first transfer of a sandbox. */
async function forge(sandbox: TransferSandbox, fields: { url: string; body: string }) {
  const { id } = sandbox.transfers()[0] ?? expect.fail('no transfer');
  const { status, body } = await post(`${String(sandbox.consoleUrl)}forge`, { id, ...fields });
  return { status, ...(JSON.parse(body) as { data?: unknown; message?: string }) };
}

test('a forgery has no headers of the sandbox, goes to no other origin, and is judged by its refusal', async () => {
  const { url, received } = await startMerchant([200, 401, 503]);
  const sandbox = await startSandbox({ clock: 'manual', callbackUrl: url, callbackHeaders: { 'X-Token': 'a' } });
  await create(sandbox, { externalId: 'one' });
  await sandbox.advance(1_000);
  const sent = { url: `${url}/x`, body: '{' };
  expect(await forge(sandbox, sent)).toMatchObject({
    data: { response: { status: 401, body: 'noted' }, tone: 'good', text: 'Your app did not believe it.' },
  });
  // Only the 503 of `confirm` tells of the sender.
  expect(await forge(sandbox, sent)).toMatchObject({ data: { response: { status: 503 }, tone: 'none' } });
  expect(received.map(({ headers }) => headers['x-token'])).toEqual(['a', undefined, undefined]);
  for (const other of [url.replace('127.0.0.1', 'localhost'), 'http://example.com/', 'no URL']) {
    expect((await forge(sandbox, { ...sent, url: other })).status).toBe(409);
  }
  expect(received).toHaveLength(3);
  expect(sandbox.attempts).toHaveLength(1);
  expect(sandbox.transfers()[0]?.events).toHaveLength(4);
});

test('what the app believes because the service confirms it is not called a forgery', async () => {
  const sandbox = await startSandbox({ clock: 'manual' });
  const client = transferService({ baseUrl: sandbox.baseUrl, ...sandbox.keys.valid });
  const url = await startReceiver({ service: client, confirm: true });
  await create(sandbox, { callbackUrl: url });
  await sandbox.advance(1_000);
  const { body } = sandbox.attempts[0] ?? expect.fail('no attempt');
  expect(await forge(sandbox, { url, body: body.replace('MTN', 'another') })).toMatchObject({
    data: { tone: 'open', text: 'Your app acknowledged it, and it is true.' },
  });
  expect(await forge(sandbox, { url, body: body.replace('15000', '9915000') })).toMatchObject({
    data: { tone: 'good', text: 'Your app did not believe it.' },
  });
});

test('the clock is paused, and goes on at another speed from where it was', async () => {
  const { url, received } = await startMerchant();
  const sandbox = await startSandbox({ callbackUrl: url, finalAfterMs: 60_000 });
  const { page, messages } = await readStream(sandbox);
  const write = async (body: object) => (await post(`${String(sandbox.consoleUrl)}speed`, body)).status;
  expect(await write({ speed: 0 })).toBe(204);
  await expect.poll(() => messages.at(-1)?.clock).toMatchObject({ speed: 0, isManual: false });
  await create(sandbox, { externalId: 'one' });
  const createdAtMs = sandbox.transfers()[0]?.createdAtMs ?? NaN;
  await create(sandbox, { externalId: 'two' });
  expect(sandbox.transfers()[1]?.createdAtMs).toBe(createdAtMs);
  let isIdle = false;
  const idle = sandbox.idle().then(() => (isIdle = true));
  await sandbox.advance(30_000);
  expect([received.length, isIdle]).toEqual([0, false]);
  expect(await write({ speed: 1_000_000 })).toBe(204);
  await idle;
  expect(received).toHaveLength(2);
  expect(sandbox.transfers()[0]?.finalAtMs).toBe(createdAtMs + 60_000);
  await expect.poll(() => page().shown).toMatchObject({ delivered: true });
});

test('clear forgets all transfers and what is due for them, also for one whose attempt is under way', async () => {
  const { promise: released, resolve: respond } = later();
  const { url, received } = await startMerchant(async ({ body }, _count, response) => {
    if (body.includes('slow')) await released;
    response.writeHead(body.includes('flip') ? 200 : 500).end();
  });
  const sandbox = await startSandbox({ clock: 'manual', callbackUrl: url });
  await create(sandbox, { externalId: 'flip-1' });
  await create(sandbox, { externalId: 'retried' });
  await sandbox.advance(1_000);
  await create(sandbox, { externalId: 'slow' });
  await create(sandbox, { externalId: 'flip-slow' });
  const advanced = sandbox.advance(1_000);
  await expect.poll(() => received).toHaveLength(4);
  await create(sandbox, { externalId: 'pending' });
  const { page } = await readStream(sandbox);
  const clear = await post(`${String(sandbox.consoleUrl)}clear`, {});
  expect([clear.status, sandbox.transfers()]).toEqual([204, []]);
  respond();
  await advanced;
  await sandbox.advance(600_000);
  expect(received).toHaveLength(4);
  expect((await query(sandbox, 'retried')).status).toBe(404);
  await expect.poll(page).toMatchObject({ total: 0, listed: [], shown: undefined });
  await create(sandbox, { externalId: 'retried' });
  await sandbox.advance(1_000);
  expect(received).toHaveLength(5);
  await expect.poll(page).toMatchObject({ total: 1, listed: ['retried'] });
});
