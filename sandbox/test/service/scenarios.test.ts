import { expect, test } from 'vitest';
import type { TransferCallback } from 'transfer-callbacks';
import { transferScenarios, type TransferSandbox } from 'transfer-sandbox';
import { later } from '../../../test/core/support.js';
import type { TransferScenario } from '../../src/service/scenarios.js';
import { create, longEnoughMs, play, query, startMerchant, startReceiver, startSandbox, toText } from './support.js';

const statusOf = async (sandbox: TransferSandbox) => (await query(sandbox, 'one')).body.data?.status;

/** Each attempt as its seconds after the first, its number and its response. */
const course = ({ attempts }: TransferSandbox): string[] =>
  attempts.map(({ sentAtMs, number, response }) => {
    const seconds = (sentAtMs - (attempts[0]?.sentAtMs ?? 0)) / 1_000;
    return `${seconds} s: ${number}, ${toText(response)}`;
  });

test.each<[TransferScenario, number[], string[]]>([
  ['success', [204], ['0 s: 1, 204']],
  ['duplicate', [500], ['0 s: 1, 500', '30 s: 2, 200', '90 s: 3, 200']],
  ['lost-attempts', [], ['0 s: 1, lost', '30 s: 2, lost', '90 s: 3, 200']],
  ['response-lost', [], ['0 s: 1, response lost', '30 s: 2, 200']],
])('%s after %j is a course of %j, with the same bytes each time', async (scenario, statuses, expected) => {
  const { sandbox, bodies } = await play(scenario, statuses);
  await sandbox.advance(longEnoughMs);
  expect(course(sandbox)).toEqual(expected);
  const [{ callback, ...transfer } = expect.fail('no transfer')] = sandbox.transfers();
  expect(transfer).toMatchObject({ delivered: true, next: undefined });
  const arrived = expected.filter((attempt) => !attempt.endsWith(', lost'));
  expect(bodies()).toEqual(arrived.map(() => JSON.stringify(callback)));
});

test('without 2xx there are exactly 4 attempts, 0, 30, 90 and 210 s after the first, with the same bytes', async () => {
  const { sandbox, bodies } = await play('success', [500, 302, 404, 503]);
  await sandbox.advance(1_000 + 209_999);
  expect(sandbox.attempts).toHaveLength(3);
  await sandbox.advance(longEnoughMs);
  expect(course(sandbox)).toEqual(['0 s: 1, 500', '30 s: 2, 302', '90 s: 3, 404', '210 s: 4, 503']);
  expect(new Set(bodies()).size).toBe(1);
  const { callback, delivered } = sandbox.transfers()[0] ?? {};
  expect(sandbox.attempts[0]?.sentAtMs).toBe(Date.parse(String(callback?.data.timestamp)));
  expect(delivered).toBe(false);
});

test('failed: the callback and a query show the same failureReason', async () => {
  const { sandbox, bodies } = await play('failed');
  await sandbox.advance(longEnoughMs);
  expect(bodies()).toHaveLength(1);
  const { event, data } = JSON.parse(String(bodies()[0])) as TransferCallback;
  expect([event, data.status, typeof data.failureReason]).toEqual(['transfer.failed', 'FAILED', 'string']);
  expect((await query(sandbox, 'one')).body.data).toEqual(data);
});

test('late-callback: the callback comes 10 minutes after the final status, which a query shows immediately', async () => {
  const { sandbox, received } = await play('late-callback');
  await sandbox.advance(1_000 + 599_999);
  expect(received).toEqual([]);
  expect(await statusOf(sandbox)).toBe('SUCCESS');
  await sandbox.advance(1);
  expect(received).toHaveLength(1);
});

test('early-callback: the callback is acknowledged before the service responds to the creation', async () => {
  const order: string[] = [];
  const { sandbox, created } = await play('early-callback', (_received, _count, response) => {
    order.push('callback');
    response.end();
  });
  order.push('creation');
  expect(order).toEqual(['callback', 'creation']);
  expect(created).toMatchObject({ status: 201, body: { data: { status: 'PENDING' } } });
  expect(sandbox.transfers()).toMatchObject([{ state: 'SUCCESS', delivered: true }]);
});

test('early-callback: a merchant that waits for the creation first gets its response after the attempt timeout', async () => {
  const { url } = await startMerchant(() => undefined);
  const sandbox = await startSandbox({ clock: 'manual', callbackUrl: url, attemptTimeoutMs: 50 });
  expect((await create(sandbox, { externalId: 'early-callback' })).status).toBe(201);
  expect(course(sandbox)).toEqual(['0 s: 1, no response within 50 ms']);
});

test('burst: ten copies arrive concurrently', async () => {
  const { promise: all, resolve: release } = later();
  const { sandbox, bodies } = await play('burst', async (_received, count, response) => {
    if (count === 10) release();
    await all;
    response.writeHead(count > 10 ? 200 : 500).end();
  });
  await sandbox.advance(longEnoughMs);
  const copies = Array.from({ length: 10 }, (_, copy) => `0 s: ${copy + 1}, 500`);
  expect(course(sandbox)).toEqual([...copies, '30 s: 11, 200']);
  expect(new Set(bodies()).size).toBe(1);
});

test('slow-sender: the body arrives in pieces', async () => {
  const { sandbox, received } = await play('slow-sender');
  await sandbox.advance(longEnoughMs);
  expect(course(sandbox)).toEqual(['0 s: 1, 200']);
  expect(received[0]?.pieces).toBeGreaterThan(1);
  expect(JSON.parse(String(received[0]?.body))).toEqual(sandbox.transfers()[0]?.callback);
});

test('flip: FAILED is acknowledged, then SUCCESS comes for the same id, once', async () => {
  const { sandbox, bodies } = await play('flip');
  await sandbox.advance(1_000);
  expect(await statusOf(sandbox)).toBe('FAILED');
  await sandbox.resend('one');
  await sandbox.advance(longEnoughMs);
  const callbacks = bodies().map((body) => JSON.parse(body) as TransferCallback);
  expect(callbacks.map(({ event }) => event)).toEqual(['transfer.failed', 'transfer.failed', 'transfer.success']);
  expect(new Set(callbacks.map(({ data }) => data.id)).size).toBe(1);
  expect(Date.parse(String(callbacks[2]?.data.timestamp))).toBeGreaterThan(
    Date.parse(String(callbacks[0]?.data.timestamp)),
  );
  expect(await statusOf(sandbox)).toBe('SUCCESS');
});

test('malformed: the first attempt is cut short, and the next one is complete', async () => {
  const { sandbox, bodies } = await play('malformed', [400]);
  await sandbox.advance(longEnoughMs);
  const [cut = '', whole = ''] = bodies();
  expect(() => JSON.parse(cut) as unknown).toThrow(SyntaxError);
  expect(whole.startsWith(cut)).toBe(true);
  expect(sandbox.attempts.map(({ body }) => body)).toEqual([cut, whole]);
});

test('wrong-content-type: the first attempt has text/plain, and the next one has application/json', async () => {
  const { sandbox, received } = await play('wrong-content-type', (_received, count, response) => {
    if (count === 1) response.writeHead(415, { 'X-Reason': 'type' });
    response.end();
  });
  await sandbox.advance(longEnoughMs);
  expect(received.map(({ headers }) => headers['content-type'])).toEqual(['text/plain', 'application/json']);
  expect(sandbox.attempts).toMatchObject([
    { contentType: 'text/plain', response: { status: 415, headers: { 'x-reason': 'type', connection: 'close' } } },
    { contentType: 'application/json', response: { status: 200, headers: { 'content-length': '0' } } },
  ]);
});

test('query-lags: a query shows PENDING until a minute after the final status', async () => {
  const { sandbox, received } = await play('query-lags');
  await sandbox.advance(1_000 + 59_999);
  expect(received).toHaveLength(1);
  expect(await statusOf(sandbox)).toBe('PENDING');
  await sandbox.advance(1);
  expect(await statusOf(sandbox)).toBe('SUCCESS');
});

test('query-fails: the service responds 500 to two queries, and 200 to the next one', async () => {
  const { sandbox } = await play('query-fails');
  const statuses = [];
  for (let count = 0; count < 3; count += 1) statuses.push((await query(sandbox, 'one')).status);
  expect(statuses).toEqual([500, 500, 200]);
});

test('a scenario is chosen by setScenario, else by the beginning of the externalId, else by the option', async () => {
  const sandbox = await startSandbox({ clock: 'manual', scenario: 'failed' });
  sandbox.setScenario('burst-1', 'flip');
  for (const externalId of ['burst-1', 'burst-2', 'no-callback', 'bursting', 'payout-1', 'constructor']) {
    await create(sandbox, { externalId });
  }
  expect(sandbox.transfers().map(({ scenario }) => scenario)).toEqual([
    ...['flip', 'burst', 'no-callback', 'failed', 'failed', 'failed'],
  ]);
});

test('against the receiver of this package, every scenario runs one handler once and ends acknowledged', async () => {
  const handled: string[] = [];
  const note = ({ data }: TransferCallback) => void handled.push(data.externalId);
  const url = await startReceiver({ onSuccess: note, onFailed: note });
  const sandbox = await startSandbox({ speed: 1_000, callbackUrl: url });
  // Silence has nothing to acknowledge, and a flip is a conflict, which the receiver refuses by design.
  const names = transferScenarios.map(({ name }) => name).filter((name) => name !== 'no-callback' && name !== 'flip');
  for (const externalId of names) await create(sandbox, { externalId });
  await sandbox.idle();
  expect([...handled].sort()).toEqual([...names].sort());
  expect(sandbox.transfers().filter(({ delivered }) => !delivered)).toEqual([]);

  await create(sandbox, { externalId: 'flip' });
  await sandbox.idle();
  expect(handled.filter((name) => name === 'flip')).toHaveLength(1);
  const responses = sandbox.attempts.filter(({ externalId }) => externalId === 'flip').map(({ response }) => response);
  expect(responses).toMatchObject([200, 422, 422, 422, 422].map((status) => ({ status })));
});
