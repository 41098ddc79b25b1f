import { createHash } from 'node:crypto';
import { expect, onTestFinished, test, vi } from 'vitest';
import { freePort } from '../../../test/support/servers/port.js';
import { create, play, readStream, startMerchant, startSandbox } from './support.js';

test('an attempt has its duration and the body of its response', async () => {
  const responses = [
    '{"outcome":"processed"}',
    '{"error":true,"statusCode":500,"message":"Broken","data":null}',
    'OK',
    '7',
  ];
  const { url } = await startMerchant((_received, count, response) => response.end(responses[count - 1]));
  const sandbox = await startSandbox({ clock: 'manual', callbackUrl: url });
  for (const externalId of ['a', 'b', 'c', 'd']) {
    await create(sandbox, { externalId });
    await sandbox.advance(1_000);
  }
  expect(sandbox.attempts.map(({ reason }) => reason)).toEqual(['processed', 'Broken', undefined, undefined]);
  expect(sandbox.attempts.map(({ response }) => 'body' in response && response.body)).toEqual(responses);
  for (const { durationMs } of sandbox.attempts) expect(durationMs).toBeLessThan(10_000);
});

test('the same seed makes the same ids, and another seed makes other ids', async () => {
  async function ids(seed?: number): Promise<string[]> {
    const sandbox = await startSandbox({ clock: 'manual', seed });
    for (const request of [{}, { externalId: 'x' }, {}]) await create(sandbox, request);
    return sandbox.transfers().map(({ id, externalId }) => `${id} ${externalId}`);
  }
  const first = await ids(1);
  expect(await ids(1)).toEqual(first);
  // Without a seed it is drawn: the second run of a test on a store that outlives it is no duplicate.
  expect(new Set([...first, ...(await ids(2)), ...(await ids()), ...(await ids())]).size).toBe(12);
  for (const each of first) expect(each).toMatch(/^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12} /);
});

test('headers of a function are made from the bytes of each attempt, and the console shows no value', async () => {
  const sign = (body: string | Buffer): string => createHash('sha256').update(body).digest('hex');
  const { url, received } = await startMerchant([500]);
  const callbackHeaders = (body: Buffer) => ({ 'x-signature': sign(body), authorization: 'Bearer of-the-sender' });
  const sandbox = await startSandbox({ clock: 'manual', callbackUrl: url, callbackHeaders });
  for (const externalId of ['one', 'two']) await create(sandbox, { externalId });
  await sandbox.advance(40_000);
  expect(received).toHaveLength(3);
  for (const { body, headers } of received) expect(headers['x-signature']).toBe(sign(body));
  const { messages } = await readStream(sandbox);
  expect(messages[0]?.settings?.callbackHeaders).toEqual({ 'x-signature': '…', authorization: '…' });
  expect(JSON.stringify(messages)).not.toContain('of-the-sender');
});

test('a function of the headers that returns none ends the attempt with what is wrong, and no value', async () => {
  const { url } = await startMerchant();
  const callbackHeaders = (() => ({ 'x-token': 'the-\nsecret' })) as never;
  const sandbox = await startSandbox({ clock: 'manual', callbackUrl: url, callbackHeaders, scenario: 'success' });
  await create(sandbox, {});
  await sandbox.advance(1_000);
  const error = expect.stringMatching(/Expected `what the function of the headers returns.x-token` to be/) as string;
  expect(sandbox.attempts[0]?.response).toEqual({ error });
  expect(JSON.stringify(sandbox.attempts)).not.toContain('secret');
});

test('resend delivers a callback that the scenario withheld', async () => {
  const { sandbox, received } = await play('no-callback');
  await sandbox.advance(1_000);
  await sandbox.resend('one');
  expect(received).toHaveLength(1);
  expect(sandbox.transfers()).toMatchObject([{ delivered: true }]);
});

test('transfers() returns a copy that later events do not change', async () => {
  const sandbox = await startSandbox({ clock: 'manual' });
  await create(sandbox, {});
  const [before] = sandbox.transfers();
  await sandbox.advance(1_000);
  const [transfer] = sandbox.transfers();
  if (transfer?.callback) transfer.callback.data.amount = -1;
  expect(sandbox.transfers()[0]?.callback?.data.amount).toBe(15_000);
  expect([before?.events.length, transfer?.events.length]).toEqual([1, 2]);
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

test('a client may keep its connection for a minute between two requests', async () => {
  const { headers } = await fetch(`${(await startSandbox()).baseUrl}/transactions/unknown`);
  expect(headers.get('keep-alive')).toBe('timeout=60');
});

test('close aborts a running attempt, frees the port, and ends the wait of idle', async () => {
  const { url, received } = await startMerchant(() => undefined);
  const sandbox = await startSandbox({ callbackUrl: url, finalAfterMs: 0, port: await freePort() });
  await create(sandbox, {});
  const idle = sandbox.idle();
  await expect.poll(() => received).toHaveLength(1);
  await Promise.all([sandbox.close(), sandbox.close()]);
  await idle;
  expect(sandbox.attempts).toMatchObject([{ response: { error: 'aborted' } }]);
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
  const { sandbox, received } = await play();
  await sandbox.advance(1_000);
  await create(sandbox, {});
  await sandbox.close();
  await sandbox.advance(300_000);
  await sandbox.resend('one');
  await sandbox.advance(300_000);
  expect(received).toHaveLength(1);
  expect(sandbox.attempts).toMatchObject([{ response: { status: 200 } }, { response: { error: 'aborted' } }]);
});
