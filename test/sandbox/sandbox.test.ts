import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { memoryStore, transferCallbackListener, transferToken } from 'transfer-callbacks';
import { transferSandbox } from 'transfer-callbacks/sandbox';
import { baseUrlAt } from '../../src/delivery/address.js';
import { attemptCallback, type AttemptAnswer } from '../../src/delivery/attempt.js';
import { freePort } from '../support/port.js';
import { serve } from '../support/serve.js';
import { course, create, startMerchant, startSandbox } from './support.js';

describe('time', () => {
  test('a manual clock repeats a run to the byte', async () => {
    async function run(): Promise<unknown> {
      const { url, bodies } = await startMerchant(({ body }, _count, response) => {
        // Attempts that are due at the same time arrive in any order.
        response.writeHead(body.includes('"b"') ? 500 : 200).end();
      });
      const sandbox = await startSandbox({ clock: 'manual', callbackUrl: url });
      for (const externalId of ['a', 'b', 'failed-1']) await create(sandbox, { externalId });
      await Promise.all([sandbox.advance(20_000), sandbox.advance(20_000)]);
      const attempts = sandbox.attempts.map(
        ({ externalId, number, sentAtMs }) => `${sentAtMs} ${externalId} ${number}`,
      );
      return [bodies().sort(), attempts.sort()];
    }
    const first = await run();
    expect(first).toMatchObject([{ length: 4 }, { length: 4 }]);
    expect(await run()).toEqual(first);
  });

  test('a manual clock does not move by itself, and idle waits only for attempts that are running', async () => {
    const { url, received } = await startMerchant();
    const sandbox = await startSandbox({ clock: 'manual', callbackUrl: url, finalAfterMs: 0 });
    await create(sandbox, {});
    await sandbox.idle();
    expect(received).toEqual([]);
    await sandbox.advance(0);
    expect(received).toHaveLength(1);
  });

  test('advance includes a transfer that is created while it runs', async () => {
    const sandbox = await startSandbox({ clock: 'manual' });
    const { url } = await startMerchant(async (_received, count, response) => {
      if (count === 1) await create(sandbox, { externalId: 'second', callbackUrl: url });
      response.end();
    });
    await create(sandbox, { externalId: 'first', callbackUrl: url });
    await sandbox.advance(5_000);
    expect(sandbox.attempts.map(({ externalId }) => externalId)).toEqual(['first', 'second']);
  });

  test('at a speed, retries keep at least the pauses of sandbox time, and idle waits for all of them', async () => {
    const { url } = await startMerchant([500, 500, 500, 500]);
    const startedAtMs = Date.now();
    const sandbox = await startSandbox({ speed: 2_000, callbackUrl: url });
    await create(sandbox, {});
    await sandbox.idle();
    const sentAtMs = sandbox.attempts.map((attempt) => attempt.sentAtMs);
    expect(sentAtMs[0]).toBeGreaterThanOrEqual(startedAtMs + 1_000);
    const pauses = sentAtMs.slice(1).map((ms, before) => ms - (sentAtMs[before] ?? 0));
    expect(pauses).toHaveLength(3);
    for (const [index, least] of [30_000, 60_000, 120_000].entries()) {
      expect(pauses[index]).toBeGreaterThanOrEqual(least);
    }
  });

  test('every attempt has its scheduled time, at any speed and on a busy machine', async () => {
    const { url } = await startMerchant([500, 500, 500, 500]);
    const sandbox = await startSandbox({ speed: 10_000, callbackUrl: url });
    await create(sandbox, {});
    await sandbox.idle();
    const finalAtMs = sandbox.transfers()[0]?.finalAtMs ?? 0;
    const seconds = sandbox.attempts.map(({ plannedAtMs, nextAtMs }) =>
      [plannedAtMs, nextAtMs].map((ms) => (ms === undefined ? ms : (ms - finalAtMs) / 1_000)),
    );
    expect(seconds).toEqual([
      [0, 30],
      [30, 90],
      [90, 210],
      [210, undefined],
    ]);
    for (const { plannedAtMs, sentAtMs } of sandbox.attempts) expect(sentAtMs).toBeGreaterThanOrEqual(plannedAtMs);
  });

  test('advance skips the pauses of a running clock, and the clock keeps running', async () => {
    const { url, received } = await startMerchant([500, 500, 500, 500]);
    const sandbox = await startSandbox({ callbackUrl: url, finalAfterMs: 10 });
    await create(sandbox, {});
    await sandbox.advance(300_000);
    expect(received).toHaveLength(4);
    const [first, ...others] = sandbox.attempts.map(({ sentAtMs }) => sentAtMs);
    const offsets = others.map((ms) => Math.round((ms - (first ?? 0)) / 10_000) * 10);
    expect(offsets).toEqual([30, 90, 210]);
    await create(sandbox, {});
    await sandbox.idle();
    expect(received).toHaveLength(5);
  });

  test.each<['manual' | undefined]>([['manual'], [undefined]])(
    'advance does not move time backwards (clock: %s)',
    async (clock) => {
      const sandbox = await startSandbox({ clock });
      await expect(sandbox.advance(-1)).rejects.toThrow('Expected `ms` to be a whole number from 0');
    },
  );

  test('a transfer shows the attempt that is planned next', async () => {
    const { url } = await startMerchant([500, 200, 500]);
    const sandbox = await startSandbox({ clock: 'manual', callbackUrl: url });
    const start = Date.parse('2026-01-15T10:30:00.000Z');
    const next = () => sandbox.transfers().map((transfer) => transfer.next);
    await create(sandbox, { externalId: 'late-callback-1' });
    expect(next()).toEqual([undefined]);
    await sandbox.advance(1_000);
    expect(next()).toEqual([{ number: 1, plannedAtMs: start + 601_000 }]);
    await sandbox.advance(600_000);
    expect(next()).toEqual([{ number: 2, plannedAtMs: start + 631_000 }]);
    await sandbox.advance(30_000);
    expect(next()).toEqual([undefined]);
    await sandbox.resend('late-callback-1');
    expect(next()).toEqual([{ number: 2, plannedAtMs: start + 661_000 }]);
  });
});

test('an attempt has its duration and the body of its response', async () => {
  const answers = [
    '{"outcome":"processed"}',
    '{"error":true,"statusCode":500,"message":"Broken","data":null}',
    'OK',
    '7',
  ];
  const { url } = await startMerchant((_received, count, response) => response.end(answers[count - 1]));
  const sandbox = await startSandbox({ clock: 'manual', callbackUrl: url });
  for (const externalId of ['a', 'b', 'c', 'd']) {
    await create(sandbox, { externalId });
    await sandbox.advance(1_000);
  }
  expect(sandbox.attempts.map(({ reason }) => reason)).toEqual(['processed', 'Broken', undefined, undefined]);
  expect(sandbox.attempts.map(({ answer }) => 'body' in answer && answer.body)).toEqual(answers);
  for (const { durationMs } of sandbox.attempts) expect(durationMs).toBeLessThan(10_000);
});

describe('secured endpoints', () => {
  test('callbackHeaders are sent with every callback', async () => {
    const { url, received } = await startMerchant([500]);
    const callbackHeaders = { 'X-Gateway-Token': 'the-secret-of-the-gateway', Authorization: 'Basic dTpw' };
    const sandbox = await startSandbox({ clock: 'manual', callbackUrl: url, callbackHeaders });
    await create(sandbox, {});
    await sandbox.advance(100_000);
    expect(received).toHaveLength(2);
    for (const { headers } of received) {
      expect(headers).toMatchObject({ 'x-gateway-token': 'the-secret-of-the-gateway', authorization: 'Basic dTpw' });
    }
  });

  test('callbackUrl may be a function of the externalId, such as urlFor of transferToken', async () => {
    const tokens = transferToken('the-secret-of-the-transfers');
    const store = memoryStore();
    const done = (): void => undefined;
    const options = { store, verify: tokens, onSuccess: done, onFailed: done, logger: false } as const;
    const { url, close } = await serve(transferCallbackListener(options));
    onTestFinished(close);
    const callbackUrl = (externalId: string) => tokens.urlFor(url, externalId);
    const sandbox = await startSandbox({ clock: 'manual', callbackUrl });
    for (const externalId of ['one', 'two']) await create(sandbox, { externalId });
    await create(sandbox, {});
    await sandbox.advance(1_000);
    expect(sandbox.attempts.map(({ reason }) => reason)).toEqual(['processed', 'processed', 'processed']);
  });

  test('the result of a function for callbackUrl is checked, and its error becomes a 500', async () => {
    const elsewhere = await startSandbox({ clock: 'manual', callbackUrl: () => 'http://203.0.113.7/' });
    expect((await create(elsewhere, {})).body).toMatchObject({
      statusCode: 400,
      message: expect.stringContaining('to return') as string,
    });
    const throwing = await startSandbox({
      clock: 'manual',
      callbackUrl: () => {
        throw new Error('No address');
      },
    });
    expect((await create(throwing, {})).body).toMatchObject({ statusCode: 500, message: 'Error: No address' });
    expect([...elsewhere.transfers(), ...throwing.transfers()]).toEqual([]);
  });
});

test('the same seed makes the same ids, and another seed makes other ids', async () => {
  async function ids(seed?: number): Promise<string[]> {
    const sandbox = await startSandbox({ clock: 'manual', seed });
    for (const request of [{}, { externalId: 'x' }, {}]) await create(sandbox, request);
    return sandbox.transfers().map(({ id, externalId }) => `${id} ${externalId}`);
  }
  const first = await ids();
  expect(await ids(1)).toEqual(first);
  expect(new Set([...first, ...(await ids(2))]).size).toBe(6);
  for (const each of first) expect(each).toMatch(/^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12} /);
});

test('resend delivers the same bytes again, with new attempts', async () => {
  const { url, bodies } = await startMerchant([200, 500, 200]);
  const sandbox = await startSandbox({ clock: 'manual', callbackUrl: url, scenario: 'success' });
  await create(sandbox, { externalId: 'one' });
  await expect(sandbox.resend('one')).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  await sandbox.advance(1_000);
  await sandbox.resend(String(sandbox.transfers()[0]?.id));
  await sandbox.advance(30_000);
  expect(course(sandbox)).toEqual([
    [0, 1, 200],
    [0, 1, 500],
    [30, 2, 200],
  ]);
  expect(new Set(bodies()).size).toBe(1);
});

test('resend delivers a callback that the scenario withheld', async () => {
  const { url, received } = await startMerchant();
  const sandbox = await startSandbox({ clock: 'manual', callbackUrl: url, scenario: 'no-callback' });
  await create(sandbox, { externalId: 'one' });
  await sandbox.advance(1_000);
  await sandbox.resend('one');
  expect(received).toHaveLength(1);
  expect(sandbox.transfers()).toMatchObject([{ delivered: true }]);
});

test('transfers() returns a copy', async () => {
  const sandbox = await startSandbox({ clock: 'manual' });
  await create(sandbox, {});
  await sandbox.advance(1_000);
  const [transfer] = sandbox.transfers();
  if (transfer?.callback) transfer.callback.data.amount = -1;
  expect(sandbox.transfers()[0]?.callback?.data.amount).toBe(15_000);
});

test('onAttempt is called for every attempt, and an error that it throws becomes a warning', async () => {
  const warnings = vi.spyOn(process, 'emitWarning').mockReturnValue(undefined);
  onTestFinished(() => {
    warnings.mockRestore();
  });
  const heard: number[] = [];
  const { url } = await startMerchant([500]);
  const sandbox = await startSandbox({
    clock: 'manual',
    callbackUrl: url,
    onAttempt({ number }) {
      heard.push(number);
      // eslint-disable-next-line @typescript-eslint/only-throw-error -- whatever a listener may throw.
      throw number === 1 ? new Error('first') : 'second';
    },
  });
  await create(sandbox, {});
  await sandbox.advance(60_000);
  expect(heard).toEqual([1, 2]);
  expect(warnings.mock.calls).toEqual([[new Error('first')], ['second']]);
});

describe('close', () => {
  test('close aborts a running attempt, frees the port, and ends the wait of idle', async () => {
    const { url, received } = await startMerchant(() => undefined);
    const sandbox = await startSandbox({ callbackUrl: url, finalAfterMs: 0, port: await freePort() });
    await create(sandbox, {});
    const idle = sandbox.idle();
    await vi.waitFor(() => {
      expect(received).toHaveLength(1);
    });
    await Promise.all([sandbox.close(), sandbox.close()]);
    await idle;
    expect(sandbox.attempts).toMatchObject([{ answer: { error: 'aborted' } }]);
    await expect(fetch(sandbox.baseUrl)).rejects.toThrow();
    const again = await startSandbox({ port: Number(new URL(sandbox.baseUrl).port) });
    expect(again.baseUrl).toBe(sandbox.baseUrl);
  });

  test('close cancels scheduled work, and idle does not wait for it', async () => {
    const { url } = await startMerchant();
    const sandbox = await startSandbox({ callbackUrl: url, finalAfterMs: 2_000_000 });
    await create(sandbox, {});
    const idle = sandbox.idle();
    await sandbox.close();
    await idle;
    expect(sandbox.attempts).toEqual([]);
  });

  test('close leaves no work on a manual clock', async () => {
    const { url, received } = await startMerchant();
    const sandbox = await startSandbox({ clock: 'manual', callbackUrl: url });
    await create(sandbox, { externalId: 'one' });
    await sandbox.advance(1_000);
    await create(sandbox, {});
    await sandbox.close();
    await sandbox.advance(300_000);
    await sandbox.resend('one');
    await sandbox.advance(300_000);
    expect(received).toHaveLength(1);
    expect(sandbox.attempts).toMatchObject([{ answer: { status: 200 } }, { answer: { error: 'aborted' } }]);
  });
});

describe('options', () => {
  const wrong: [string, object][] = [
    ['Unknown option `speeed`', { speeed: 1 }],
    ['Expected `port` to be a whole number from 0 to 65535, got -1', { port: -1 }],
    ['Expected `host` to be a host name or address, got ""', { host: '' }],
    ['Expected `apiKey` to be visible ASCII characters without spaces, got a string of 3', { apiKey: 'a b' }],
    ['Expected `apiSecret` to be visible ASCII characters without spaces, got a number', { apiSecret: 7 }],
    ['Expected `callbackUrl` to be a URL, got a string', { callbackUrl: 'x' }],
    ['`allowOtherHosts` to be set, got a string', { callbackUrl: 'http://example.com' }],
    ['Expected `callbackHeaders` to be an object of names and values', { callbackHeaders: ['a: b'] }],
    ['Expected `callbackHeaders` to be without Host', { callbackHeaders: { 'content-type': 'a/b' } }],
    ['Expected `callbackHeaders` to be named as HTTP allows, got "a b"', { callbackHeaders: { 'a b': 'c' } }],
    ['Expected `callbackHeaders.a` to be a string that a header can carry', { callbackHeaders: { a: 'b\nc' } }],
    ['Expected `finalAfterMs` to be a whole number', { finalAfterMs: 0.5 }],
    ['Expected `speed` to be a number above 0, up to 1000000, got 0', { speed: 0 }],
    ['Expected `speed` to be a number above 0, up to 1000000, got NaN', { speed: NaN }],
    ['Expected `speed` to be left out', { speed: 2, clock: 'manual' }],
    ['Expected `clock` to be "manual" if given, got "real"', { clock: 'real' }],
    ['Expected `attemptTimeoutMs` to be a whole number from 1', { attemptTimeoutMs: 0 }],
    ['Expected `seed` to be a whole number from 0 to 4294967295', { seed: -1 }],
    ['Expected `scenario` to be one of success, failed', { scenario: 'toString' }],
    ['Expected `allowOtherHosts` to be true or false, got "yes"', { allowOtherHosts: 'yes' }],
    ['Expected `onAttempt` to be a function', { onAttempt: {} }],
  ];
  test.each(wrong)('%s', async (message, options) => {
    const starting = transferSandbox(options);
    await expect(starting).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    await expect(starting).rejects.toThrow(message);
  });

  test('setScenario accepts only a known scenario and a transfer that does not exist yet', async () => {
    const sandbox = await startSandbox({ clock: 'manual' });
    await create(sandbox, { externalId: 'there' });
    expect(() => {
      sandbox.setScenario('there', 'burst');
    }).toThrow('Expected `externalId` to be of a transfer that has not been created yet, got "there".');
    expect(() => {
      sandbox.setScenario('new', 'nonsense' as 'burst');
    }).toThrow('Expected `scenario` to be one of');
  });

  test('starting rejects when the port is taken', async () => {
    const taken = await startSandbox();
    const starting = transferSandbox({ port: Number(new URL(taken.baseUrl).port) });
    await expect(starting).rejects.toMatchObject({ code: 'EADDRINUSE' });
  });

  test('a sandbox that listens at localhost is reached there', async () => {
    const sandbox = await startSandbox({ host: 'localhost' });
    expect(new URL(sandbox.baseUrl).hostname).toBe('localhost');
    expect((await create(sandbox, {})).status).toBe(201);
  });

  // By the function: not every machine has IPv6 to listen at.
  test.each([
    ['0.0.0.0', 'http://127.0.0.1:80'],
    ['::', 'http://[::1]:80'],
    ['fe80::1', 'http://[fe80::1]:80'],
  ])('a sandbox that listens at %s is reached at %s', (host, baseUrl) => {
    expect(baseUrlAt(host, 80)).toBe(baseUrl);
  });
});

function errorOf(answer: AttemptAnswer): string | undefined {
  return 'error' in answer ? answer.error : undefined;
}

describe('an attempt', () => {
  test('an attempt whose response has no length ends with the connection', async () => {
    const { url } = await startMerchant((_received, _count, response) => {
      response.socket?.end('HTTP/1.1 202 Accepted\r\nConnection: close\r\n\r\nas long as it lasts');
    });
    expect(await attemptCallback(url, '{}')).toMatchObject({ status: 202 });
  });

  test('an attempt gets no response if the server switches to another protocol', async () => {
    const { url } = await startMerchant((_received, _count, response) => {
      response.socket?.end('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n');
    });
    expect(errorOf(await attemptCallback(url, '{}'))).toMatch(/closed|hang up/);
  });

  test.each([
    ['nowhere', /Invalid URL/],
    ['ftp://127.0.0.1/', /ftp:/],
    ['http://127.0.0.1:1/', /ECONNREFUSED/],
    ['http://localhost:1/', /ECONNREFUSED/],
    ['https://127.0.0.1:1/', /ECONNREFUSED/],
  ])('an attempt at %s resolves with an error and does not reject', async (url, error) => {
    expect(errorOf(await attemptCallback(url, '{}'))).toMatch(error);
  });

  test('an attempt that was aborted before it began is not sent', async () => {
    const { url, received } = await startMerchant();
    expect(await attemptCallback(url, '{}', { signal: AbortSignal.abort() })).toEqual({ error: 'aborted' });
    expect(received).toEqual([]);
  });

  test('an attempt gets no response if the connection is cut', async () => {
    const { url } = await startMerchant((_received, _count, response) => response.destroy());
    expect(await attemptCallback(url, Buffer.from('{}'))).toEqual({ error: 'socket hang up' });
  });

  test('an attempt gets no response if it is cut in the middle', async () => {
    const { url } = await startMerchant((_received, _count, response) => {
      response.writeHead(200, { 'Content-Length': 9 }).write('half', () => response.destroy());
    });
    expect(await attemptCallback(url, '{}')).toEqual({ error: 'answer cut short' });
  });

  test('an attempt that is sent in pieces stops when the merchant cuts the connection', async () => {
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', () => socket.destroy());
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const answer = await attemptCallback(`http://127.0.0.1:${port}/`, 'x'.repeat(100_000), { pieces: true });
    expect(errorOf(answer)).toMatch(/hang up|ECONNRESET|EPIPE/);
  });
});
