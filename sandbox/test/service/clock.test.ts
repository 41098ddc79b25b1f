import { expect, test } from 'vitest';
import { create, play, startMerchant, startSandbox } from './support.js';

test('a manual clock repeats a run to the byte', async () => {
  async function run(): Promise<unknown> {
    const { url, bodies } = await startMerchant(({ body }, _count, response) => {
      // Attempts that are due at the same time arrive in any order.
      response.writeHead(body.includes('"b"') ? 500 : 200).end();
    });
    const sandbox = await startSandbox({ clock: 'manual', seed: 1, callbackUrl: url });
    for (const externalId of ['a', 'b', 'failed-1']) await create(sandbox, { externalId });
    await Promise.all([sandbox.advance(20_000), sandbox.advance(20_000)]);
    const attempts = sandbox.attempts.map(({ externalId, number, sentAtMs }) => `${sentAtMs} ${externalId} ${number}`);
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

test('at any speed, attempts are planned as documented and pause no shorter, and idle waits for all of them', async () => {
  const { url } = await startMerchant([500, 500, 500, 500]);
  const startedAtMs = Date.now();
  const sandbox = await startSandbox({ speed: 2_000, callbackUrl: url });
  await create(sandbox, {});
  await sandbox.idle();
  const finalAtMs = sandbox.transfers()[0]?.finalAtMs ?? 0;
  expect(finalAtMs).toBeGreaterThanOrEqual(startedAtMs + 1_000);
  const seconds = sandbox.attempts.map(({ plannedAtMs, nextAtMs }) =>
    [plannedAtMs, nextAtMs].map((ms) => (ms === undefined ? ms : (ms - finalAtMs) / 1_000)),
  );
  expect(seconds.map(String)).toEqual(['0,30', '30,90', '90,210', '210,']);
  let before = { sentAtMs: -Infinity, plannedAtMs: -Infinity };
  for (const { sentAtMs, plannedAtMs } of sandbox.attempts) {
    expect(sentAtMs).toBeGreaterThanOrEqual(plannedAtMs);
    expect(sentAtMs - before.sentAtMs).toBeGreaterThanOrEqual(plannedAtMs - before.plannedAtMs);
    before = { sentAtMs, plannedAtMs };
  }
});

test('at any speed, a contradiction is not dated before the acknowledgement that it follows', async () => {
  const sandbox = await startSandbox({ speed: 2_000, scenario: 'flip' });
  // The contradiction, 10 s after the first attempt was planned, is due after 5 of these 20 ms.
  const { url } = await startMerchant(async (_received, _count, response) => {
    await new Promise((resolve) => setTimeout(resolve, 20));
    response.end();
  });
  await create(sandbox, { callbackUrl: url });
  await sandbox.idle();
  const events = sandbox.transfers()[0]?.events ?? [];
  expect(events.map(({ type }) => type)).toEqual([
    ...['created', 'final', 'attempt', 'acknowledged'],
    ...['final', 'attempt', 'acknowledged'],
  ]);
  expect(events.toSorted((one, other) => one.atMs - other.atMs)).toEqual(events);
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

test('a transfer shows the attempt that is planned next, the earliest one of its two deliveries', async () => {
  const { sandbox } = await play('late-callback', [500, 500, 200, 200, 500]);
  const start = Date.parse('2026-01-15T10:30:00.000Z');
  const next = () => sandbox.transfers().map((transfer) => transfer.next);
  expect(next()).toEqual([undefined]);
  await sandbox.advance(1_000);
  expect(next()).toEqual([{ number: 1, plannedAtMs: start + 601_000 }]);
  await sandbox.advance(610_000);
  expect(next()).toEqual([{ number: 2, plannedAtMs: start + 631_000 }]);
  await sandbox.resend('one');
  expect(next()).toEqual([{ number: 2, plannedAtMs: start + 631_000 }]);
  await sandbox.advance(20_000);
  expect(next()).toEqual([{ number: 2, plannedAtMs: start + 641_000 }]);
  await sandbox.advance(10_000);
  expect(next()).toEqual([undefined]);
});
