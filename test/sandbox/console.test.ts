import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { transferSandbox, transferScenarios, type TransferSandbox } from 'transfer-callbacks/sandbox';
import { manualClock } from '../../src/sandbox/clock.js';
import { refuseHost } from '../../src/sandbox/guard.js';
import { ConsoleStream } from '../../src/sandbox/stream.js';
import { post } from '../support/post.js';
import { serve } from '../support/serve.js';
import { head, overSocket, parseStatus } from '../support/sockets.js';
import { create, startMerchant, startSandbox } from './support.js';

const json = { 'Content-Type': 'application/json' };
const soon = { timeout: 20_000 };

/** Sends a request as a browser does, whose `Host` and Sec-Fetch headers `fetch` does not let through. */
async function get(url: string, headers: Record<string, string> = {}, method = 'GET') {
  const request = httpRequest(url, { method, headers, agent: false }).end();
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  const content = (await response.setEncoding('utf8').toArray()) as string[];
  return { status: Number(response.statusCode), headers: response.headers, body: content.join('') };
}

interface Message {
  readonly event: string;
  readonly data: Record<string, unknown>;
}

/** Reads the stream as a test of a user would, message by message. */
async function readStream(sandbox: TransferSandbox) {
  const leaving = new AbortController();
  const leave = (): void => {
    leaving.abort();
  };
  onTestFinished(leave);
  const response = await fetch(`${String(sandbox.consoleUrl)}events`, { signal: leaving.signal });
  expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
  const messages: Message[] = [];
  const received = { text: '' };
  async function read(): Promise<void> {
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      received.text += chunk;
      for (let end = received.text.indexOf('\n\n'); end !== -1; end = received.text.indexOf('\n\n')) {
        const [, event, data] = /event: (.+)\ndata: (.+)/.exec(received.text.slice(0, end)) ?? [];
        if (event !== undefined) messages.push({ event, data: JSON.parse(String(data)) as Message['data'] });
        received.text = received.text.slice(end + 2);
      }
    }
  }
  const ended = read().catch(() => undefined);
  await vi.waitFor(() => {
    expect(messages[0]?.event).toBe('state');
  }, soon);
  return { messages, ended, leave };
}

describe('the Host', () => {
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

  test('a request with a foreign Host creates no transfer, and so calls no local port', async () => {
    const { url, received } = await startMerchant();
    const sandbox = await startSandbox({ finalAfterMs: 0 });
    const headers = { Host: 'evil.example', 'x-api-key': 'sandbox-key', 'x-api-secret': 'sandbox-secret' };
    const { status } = await post(`${sandbox.baseUrl}/transactions/transfer`, { callbackUrl: url }, { headers });
    expect(status).toBe(421);
    expect([sandbox.transfers(), received]).toEqual([[], []]);
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
});

describe('the page', () => {
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

  test.each(['nothing.js', '..%2fconsole.ts', '../console.ts', 'tsconfig.json', 'a/b.js'])(
    'the page has no file %s',
    async (name) => {
      const { baseUrl } = await startSandbox();
      const text = await overSocket(baseUrl, (socket) =>
        socket.write(head(`${baseUrl}/console/`, {}, 'GET').replace('/console/', `/console/${name}`)),
      );
      expect(parseStatus(text)).toBe(404);
    },
  );

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

  test('with console: false there is no page, and the service keeps its paths', async () => {
    const sandbox = await startSandbox({ console: false });
    expect(sandbox.consoleUrl).toBeUndefined();
    for (const path of ['/console/', '/console/events', '/']) {
      expect((await get(sandbox.baseUrl + path, { Accept: 'text/html' })).status).toBe(404);
    }
    expect((await get(`${sandbox.baseUrl}/console/`, { Host: 'evil.example' })).status).toBe(421);
  });
});

describe('a write', () => {
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

  test.each<[string, unknown, number, string]>([
    ['advance', '{', 400, 'no JSON object'],
    ['advance', 'null', 400, 'no JSON object'],
    ['advance', { ms: -1 }, 409, 'Expected `ms` to be a whole number'],
    ['resend', {}, 409, 'Expected `id` to be a string'],
    ['resend', { id: 'unknown' }, 409, 'of a transfer that is final'],
    ['contradict', { id: 'unknown' }, 409, 'of a transfer that is final'],
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
    expect(sandbox.attempts.map(({ number, sentAtMs, answer }) => [number, sentAtMs - first, answer])).toMatchObject([
      [1, 0, { status: 500 }],
      [2, 30_000, { status: 200 }],
      [1, 30_000, { status: 200 }],
      [1, 30_000, { status: 422 }],
    ]);
    expect(await write('advance', {})).toBe(204);
  });
});

async function timeOf(sandbox: TransferSandbox): Promise<number> {
  const { messages, leave } = await readStream(sandbox);
  leave();
  return (messages[0]?.data.clock as { nowMs: number }).nowMs;
}

describe('the stream', () => {
  test('the stream begins with the state, and sends each changed transfer once per turn', async () => {
    const { url } = await startMerchant();
    const sandbox = await startSandbox({ clock: 'manual', callbackUrl: url, callbackHeaders: { 'X-Token': 'a' } });
    await create(sandbox, { externalId: 'burst-1' });
    const { messages } = await readStream(sandbox);
    expect(messages[0]?.data).toMatchObject({
      total: 1,
      transfers: [{ externalId: 'burst-1', state: 'pending', events: [{ type: 'created' }] }],
      clock: { speed: 0, nextMs: Date.parse('2026-01-15T10:30:01.000Z') },
      settings: {
        apiKey: 'sandbox-key',
        apiSecret: 'sandbox-secret',
        callbackUrl: url,
        callbackHeaders: { 'X-Token': 'a' },
        scenarios: transferScenarios,
      },
    });
    await sandbox.advance(1_000);
    await vi.waitFor(() => {
      const last = messages.findLast(({ event }) => event === 'transfer');
      expect(last?.data).toMatchObject({ delivered: true, underWay: 0 });
    }, soon);
    const withAttempts = messages.filter(
      ({ event, data }) => event === 'transfer' && JSON.stringify(data).includes('"attempt"'),
    );
    expect(withAttempts).toHaveLength(1);
    expect(sandbox.attempts).toHaveLength(10);
  });

  test('the stream sends the new time when nothing else has changed', async () => {
    const sandbox = await startSandbox({ clock: 'manual' });
    const { messages } = await readStream(sandbox);
    await sandbox.advance(60_000);
    await vi.waitFor(() => {
      expect(messages.at(-1)).toMatchObject({
        event: 'clock',
        data: { nowMs: Date.parse('2026-01-15T10:31:00.000Z') },
      });
    }, soon);
  });

  test('the stream begins with the newest 200 transfers and their total number', async () => {
    const sandbox = await startSandbox({ clock: 'manual' });
    for (let made = 0; made < 210; made += 1) await create(sandbox, { externalId: `t-${made}` });
    const { messages } = await readStream(sandbox);
    const transfers = messages[0]?.data.transfers as { externalId: string }[];
    expect([messages[0]?.data.total, transfers.length, transfers[0]?.externalId]).toEqual([210, 200, 't-10']);
  });

  test('the stream accepts 20 readers, and another one when one has left', async () => {
    const sandbox = await startSandbox();
    const readers = [];
    for (let count = 0; count < 20; count += 1) readers.push(await readStream(sandbox));
    const events = `${String(sandbox.consoleUrl)}events`;
    expect((await get(events)).status).toBe(503);
    readers[0]?.leave();
    await vi.waitFor(async () => {
      const { messages } = await readStream(sandbox);
      expect(messages).toHaveLength(1);
    }, soon);
  });

  test('the stream ends when the sandbox closes', async () => {
    const sandbox = await transferSandbox();
    const { ended } = await readStream(sandbox);
    await sandbox.close();
    await ended;
  });

  test('the stream disconnects a reader that has stopped reading', async () => {
    const sandbox = await startSandbox({ clock: 'manual' });
    const { port } = new URL(sandbox.baseUrl);
    const socket = connect(Number(port), '127.0.0.1');
    let ended = false;
    socket.on('close', () => (ended = true)).on('error', () => undefined);
    await once(socket, 'connect');
    socket.write(head(`${String(sandbox.consoleUrl)}events`, {}, 'GET'));
    await once(socket, 'readable');
    // It reads nothing; each query makes a message with the whole transfer, of 100 kB.
    await create(sandbox, { externalId: 'x'.repeat(50_000) });
    const { id } = sandbox.transfers()[0] ?? expect.fail('no transfer');
    const { keys, baseUrl } = sandbox;
    const headers = { 'x-api-key': keys.valid.apiKey, 'x-api-secret': keys.valid.apiSecret };
    for (let asked = 0; asked < 400; asked += 1) {
      await (await fetch(`${baseUrl}/transactions/${id}`, { headers })).arrayBuffer();
    }
    socket.resume();
    await vi.waitFor(() => {
      expect(ended).toBe(true);
    }, soon);
  });

  test('the stream sends comments while nothing happens, until the last reader has left', async () => {
    const stream = new ConsoleStream(manualClock(), { commentMs: 5 });
    const { url, close } = await serve((_request, response) => {
      stream.add(response.writeHead(200), {});
    });
    onTestFinished(close);
    const response = await fetch(url);
    let text = '';
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += chunk;
      if (text.includes('\n\n:\n\n:\n\n')) break;
    }
    expect(text).toMatch(/^retry: 1000\nevent: state\n/);
  });
});

describe('what the page is shown of secrets', () => {
  async function settings(options: object): Promise<unknown> {
    const { messages } = await readStream(await startSandbox(options));
    return messages[0]?.data.settings;
  }

  test('on this machine, the page shows the given secrets', async () => {
    expect(await settings({ apiSecret: 'given', callbackHeaders: { 'X-Token': 'a' } })).toMatchObject({
      ...{ apiSecret: 'given', isDefaultSecret: false, callbackHeaders: { 'X-Token': 'a' } },
    });
  });

  test('if other machines reach the sandbox, the page shows no secret', async () => {
    const given = { host: '0.0.0.0', apiSecret: 'given', callbackHeaders: { 'X-Token': 'a' } };
    expect(await settings(given)).toMatchObject({ apiSecret: null, callbackHeaders: { 'X-Token': '…' } });
    expect(await settings({ host: '0.0.0.0' })).toMatchObject({ apiSecret: 'sandbox-secret' });
  });

  test('the page does not call a function for callbackUrl', async () => {
    const callbackUrl = () => expect.fail('called');
    expect(await settings({ callbackUrl })).toMatchObject({ callbackUrl: null, hasCallbackUrl: true });
  });
});
