import { setTimeout as pause } from 'node:timers/promises';
import { postgresStore } from 'transfer-callbacks';
import { expect, onTestFinished, test, vi } from 'vitest';
import { nextTurn, setDeadline } from '../../src/stores/postgres-deadline.js';
import { blockEventLoop } from '../support/block.js';
import { startLedger } from '../support/postgres.js';

test('a deadline that passes while the event loop is blocked is extended once', async () => {
  const onDue = vi.fn();
  setDeadline(1_000, onDue);
  blockEventLoop(1_100);
  // The timer runs, and would have called `onDue` in the turn after that.
  for (let turn = 0; turn < 4; turn += 1) await nextTurn();
  expect(onDue).not.toHaveBeenCalled();
  blockEventLoop(1_100);
  for (let turn = 0; turn < 4; turn += 1) await nextTurn();
  expect(onDue).toHaveBeenCalledOnce();
});

test('a deadline that passes while the event loop is free is extended once, by 50 ms', async () => {
  const onDue = vi.fn();
  const startedAt = performance.now();
  setDeadline(1_000, onDue);
  await vi.waitUntil(() => onDue.mock.calls.length > 0);
  expect(performance.now() - startedAt).toBeGreaterThanOrEqual(1_049);
});

test('an extended deadline can be cancelled', async () => {
  const onDue = vi.fn();
  const cancel = setDeadline(1_000, onDue);
  blockEventLoop(1_100);
  for (let turn = 0; turn < 4; turn += 1) await nextTurn();
  cancel();
  await pause(1_100);
  expect(onDue).not.toHaveBeenCalled();
});

test('a lease that is not renewed lapses although the event loop is blocked at its end', async () => {
  const { server, pool } = await startLedger({ max: 2 });
  onTestFinished(() => server.stop());
  const store = postgresStore(pool);
  const request = { fingerprint: 'facts', leaseMs: 3_000, retentionMs: 100_000 };
  const claim = await store.claim('callback', { ...request, token: 'a' });
  expect(claim.state).toBe('claimed');
  const endsAt = performance.now() + request.leaseMs;
  await pause(request.leaseMs - 500);
  blockEventLoop(1_000);
  await vi.waitFor(
    async () => {
      expect((await store.claim('callback', { ...request, token: 'b' })).state).toBe('claimed');
    },
    // Another lease would begin after the block.
    { timeout: endsAt + 0.8 * request.leaseMs - performance.now(), interval: 20 },
  );
}, 30_000);
