// The sandbox makes situations of docs/operations.md that no other test makes: the metrics and log lines that the runbook tells to
// look at are there, and its own commands, as processes, find the right verdict.
import type { PoolClient } from 'pg';
import type { TransferCallback } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { expect, test, vi } from 'vitest';
import { objects } from '../cli/support.js';
import { post } from '../support/helpers/post.js';
import {
  readVerdict,
  secret,
  startMerchantApp,
  startPostgresBackend,
  startRedisBackend,
  toInspect,
  toReconcile,
  type Printed,
} from './support.js';

/** Resolves with the result of the one transfer that `reconcile` printed, and its exit code. */
async function reconciled(printed: Promise<Printed>): Promise<[result: string, code: unknown]> {
  const { code, out } = await printed;
  return [(objects(out)[0] as { result: string }).result, code];
}

/** The service at the speed of real life, where a transfer is final immediately. */
const service = { finalAfterMs: 0 };

test('of a stuck handler on PostgreSQL `inspect` shows the backend, and ending that rolls its writes back', async () => {
  const backend = await startPostgresBackend();
  await backend.pool.query(
    'CREATE TABLE ledger (entry text); CREATE TABLE accounts (id int); INSERT INTO accounts VALUES (1)',
  );
  const merchant = await startMerchantApp(backend, {
    service: { speed: 1_000, attemptTimeoutMs: 2_000 },
    handler: "({ data }, { tx }) => tx.query('INSERT INTO ledger VALUES ($1)', [data.externalId])",
    receiver: {
      async onSuccess({ data }: TransferCallback, { tx }: { tx: PoolClient }) {
        await tx.query('INSERT INTO ledger VALUES ($1)', [data.externalId]);
        await tx.query('SELECT FROM accounts FOR UPDATE');
      },
    },
  });
  const ledger = async (): Promise<unknown[]> => (await backend.pool.query<object>('SELECT entry FROM ledger')).rows;
  const blocking = await backend.pool.connect();
  await blocking.query('BEGIN; SELECT FROM accounts FOR UPDATE');
  await merchant.pay('success-1');
  const stuck = await merchant.run(toInspect('success-1'));
  expect(readVerdict(stuck)).toEqual(['in_progress', 0]);
  const [, backendPid] = /\n {12}by backend (\d+)\n/.exec(stuck.out) ?? expect.fail(stuck.out);

  await backend.pool.query('SELECT pg_terminate_backend($1)', [backendPid]);
  await blocking.query('ROLLBACK');
  blocking.release();
  await vi.waitUntil(async () => {
    const { state, here } = await merchant.receiver.inspect(merchant.findId('success-1'));
    return state === 'free' && here === undefined;
  });
  expect(await ledger()).toEqual([]);
  expect(readVerdict(await merchant.run(toInspect('success-1')))).toEqual(['missed', 1]);
  expect(await reconciled(merchant.run(toReconcile('success-1')))).toEqual(['processed', 0]);
  expect(await ledger()).toEqual([{ entry: 'success-1' }]);
});

test('a conflict is `conflict` where the service gives other facts now, and its record shows what was handled', async () => {
  const merchant = await startMerchantApp(await startRedisBackend());
  await merchant.pay('flip-1');
  const conflict = await merchant.run(toInspect('flip-1'));
  expect(readVerdict(conflict)).toEqual(['conflict', 1]);
  expect(conflict.out).toMatch(/\n {2}service {3}SUCCESS since /);
  expect(conflict.out).toMatch(/\["FAILED",.*"flip-1"\]/);
  expect(await merchant.deliveries('conflict')).toBeGreaterThanOrEqual(1);
  const sides = { settled: { status: 'FAILED' }, received: { status: 'SUCCESS' } };
  expect(merchant.lines.find(({ level }) => level === 'error')?.details).toMatchObject({
    ...{ outcome: 'conflict', externalId: 'flip-1', ...sides },
  });
  expect(await merchant.reconcile('flip-1')).toMatchObject({
    failed: 1,
    problems: [{ outcome: 'conflict', ...sides }],
  });
  expect(merchant.booked).toEqual(['flip-1 FAILED']);
});

test('a forged callback that was handled is `unfounded`, or `undecided` if the service responds with 404', async () => {
  // Nothing becomes final in this merchant.
  const merchant = await startMerchantApp(await startRedisBackend(), { service: { finalAfterMs: 3_600_000 } });
  await merchant.create('payout-1');
  const early = transferSucceeded({ id: merchant.findId('payout-1'), externalId: 'payout-1' });
  const invented = transferSucceeded();
  for (const forged of [early, invented])
    expect(await post(merchant.callbackUrl, forged)).toMatchObject({ status: 200 });

  const found = await merchant.run(toInspect('payout-1'));
  expect(readVerdict(found)).toEqual(['unfounded', 1]);
  expect(found.out).toMatch(/\n {2}service {3}PENDING/);
  const unheardOf = await merchant.run(toInspect(invented.data.id));
  expect(readVerdict(unheardOf)).toEqual(['undecided', 3]);
  expect(unheardOf.out).toMatch(/\n {2}service {3}.*404/);
  expect(await reconciled(merchant.run(toReconcile('payout-1')))).toEqual(['pending', 0]);
});

test('a callback that is forgotten is `missed`, and its handler runs again when it is reconciled', async () => {
  const merchant = await startMerchantApp(await startRedisBackend(), { service });
  await merchant.pay('success-1');
  const id = merchant.findId('success-1');
  const record = await merchant.receiver.inspect(id);
  if (record.state !== 'settled') expect.fail(record.state);
  const by = 'ada@merchant.example';
  const reason = 'Booked to the wrong account, INC-341';
  expect(await merchant.receiver.forget(id, { settled: record.fingerprint, by, reason })).toBe(true);
  expect(merchant.lines.map(({ level, details }) => [level, details])).toEqual(
    new Array(2).fill(['warn', expect.objectContaining({ delivery: record.delivery, id, by, reason })]),
  );
  expect(readVerdict(await merchant.run(toInspect('success-1')))).toEqual(['missed', 1]);
  expect(merchant.booked).toEqual(['success-1 SUCCESS']);

  expect(await reconciled(merchant.run(toReconcile('success-1')))).toEqual(['processed', 0]);
  expect(merchant.booked).toEqual(['success-1 SUCCESS', 'success-1 SUCCESS']);
});

test('after a rotation in one place only a payout is `missed`, and a POST of `{}` tells which secret the app accepts', async () => {
  const merchant = await startMerchantApp(await startRedisBackend(), { callsWith: 'the-old-secret-of-the-url' });
  await merchant.pay('success-1');
  expect(merchant.statuses()).toEqual([401, 401, 401, 401]);
  expect(await merchant.deliveries('unauthorized')).toBe(4);
  const issues = [{ message: 'The sender was refused before the body was read.' }];
  expect(merchant.lines.map(({ details }) => details)).toMatchObject(
    Array(4).fill({ outcome: 'unauthorized', issues }),
  );
  expect(readVerdict(await merchant.run(toInspect('success-1')))).toEqual(['missed', 1]);
  expect(await post(merchant.callbackUrl, '{}')).toMatchObject({ status: 401 });
  expect(await post(`${merchant.url}/${secret}`, '{}')).toMatchObject({ status: 400 });
});

test('after Redis was emptied a handled transfer is `missed`, with the advice to compare with the books first', async () => {
  const backend = await startRedisBackend();
  const merchant = await startMerchantApp(backend, { service });
  await merchant.pay('success-1');
  await backend.client.flushall();
  const found = await merchant.run(toInspect('success-1'));
  expect(readVerdict(found)).toEqual(['missed', 1]);
  expect(found.out.replaceAll(/\s+/g, ' ')).toContain(' stop reconciliation and compare with your books. Otherwise ');
  expect(merchant.booked).toEqual(['success-1 SUCCESS']);
});
