import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, expect, test } from 'vitest';
import { post } from '../support/post.js';
import { head } from '../support/sockets.js';
import { create, get, startMerchant, startSandbox } from './support.js';

const json = { 'Content-Type': 'application/json' };

describe('a write', () => {
  test.each<[string, unknown, number, string]>([
    ['advance', '{', 400, 'no JSON object'],
    ['advance', 'null', 400, 'no JSON object'],
    ['advance', { ms: -1 }, 409, 'Expected `ms` to be a whole number'],
    ['resend', {}, 409, 'Expected `id` to be a string'],
    ['resend', { id: 'unknown' }, 409, 'of a transfer that is final'],
    ['contradict', { id: 'unknown' }, 409, 'of a transfer that is final'],
    ['forge', { id: 'unknown', url: 'http://127.0.0.1:1/', body: '' }, 409, 'a URL of the origin of the callback URL'],
    ['forge', { id: 'unknown', url: 'http://127.0.0.1:1/' }, 409, 'Expected `body` to be a string'],
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
    const socket = connect(Number(new URL(baseUrl).port), '127.0.0.1');
    await once(socket, 'connect');
    socket.write(head(`${String(consoleUrl)}advance`, { ...json, 'Content-Length': 100 }));
    socket.end('{');
    await once(socket.resume(), 'close');
    expect((await get(String(consoleUrl))).status).toBe(200);
  });

  test.each([
    ['advance', 'GET', 'POST'],
    ['events', 'POST', 'GET'],
    ['', 'DELETE', 'GET'],
  ])('the response of /console/%s to %s names the allowed method', async (path, method, allow) => {
    const { consoleUrl } = await startSandbox();
    const { status, headers } = await get(String(consoleUrl) + path, {}, method);
    expect([status, headers.allow]).toEqual([405, allow]);
  });

  test('writes resend, contradict, and move time to the next due attempt', async () => {
    const { url } = await startMerchant([500, 200, 200, 422]);
    const sandbox = await startSandbox({ clock: 'manual', callbackUrl: url });
    await create(sandbox, { externalId: 'one' });
    const write = async (action: string, body: object) =>
      (await post(`${String(sandbox.consoleUrl)}${action}`, body)).status;
    const { id } = sandbox.transfers()[0] ?? expect.fail('no transfer');
    expect(await write('advance', {})).toBe(204);
    expect(await write('advance', {})).toBe(204);
    expect(await write('resend', { id })).toBe(204);
    expect(await write('contradict', { id })).toBe(204);
    const first = sandbox.attempts[0]?.sentAtMs ?? 0;
    expect(
      sandbox.attempts.map(({ number, sentAtMs, response }) => [number, sentAtMs - first, response]),
    ).toMatchObject([
      [1, 0, { status: 500 }],
      [2, 30_000, { status: 200 }],
      [1, 30_000, { status: 200 }],
      [1, 30_000, { status: 422 }],
    ]);
    expect(await write('advance', {})).toBe(204);
  });

  test('a forgery has the headers of the sandbox only if its sender knows them, and goes to no other origin', async () => {
    const { url, received } = await startMerchant([200, 401, 422]);
    const sandbox = await startSandbox({ clock: 'manual', callbackUrl: url, callbackHeaders: { 'X-Token': 'a' } });
    await create(sandbox, { externalId: 'one' });
    await sandbox.advance(1_000);
    const { id } = sandbox.transfers()[0] ?? expect.fail('no transfer');
    const forge = async (fields: object) => {
      const sent = await post(`${String(sandbox.consoleUrl)}forge`, { id, url: `${url}/x`, body: '{', ...fields });
      return { status: sent.status, ...(JSON.parse(sent.body) as { data?: unknown; message?: string }) };
    };
    expect(await forge({})).toMatchObject({
      data: { response: { status: 401, body: 'noted' }, hint: expect.stringContaining('refused the sender') as string },
    });
    expect(await forge({ isKnown: true })).toMatchObject({ data: { response: { status: 422 } } });
    expect(received.slice(1).map(({ body, headers }) => [body, headers['x-token']])).toEqual([
      ['{', undefined],
      ['{', 'a'],
    ]);
    for (const other of [url.replace('127.0.0.1', 'localhost'), 'http://example.com/', 'no URL']) {
      expect((await forge({ url: other })).status).toBe(409);
    }
    expect(received).toHaveLength(3);
    expect(sandbox.attempts).toHaveLength(1);
    expect(sandbox.transfers()[0]?.events).toHaveLength(4);
  });
});
