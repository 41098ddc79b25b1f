// A rehearsed night, continued: the runbook's own commands, as processes, find the right verdict in each situation.
import type { PoolClient } from 'pg';
import { readDelivery, type TransferCallback } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { expect, test, vi } from 'vitest';
import { later } from '../core/support.js';
import { post } from '../support/post.js';
import {
  readVerdict,
  secret,
  startNight,
  startPostgresBackend,
  startRedisBackend,
  toInspect,
  toResend,
} from './support.js';

// Each command is a separate process, which takes seconds on a busy machine.
vi.setConfig({ testTimeout: 180_000 });

/** The service at the speed of real life, where a transfer is final immediately. */
const service = { finalAfterMs: 0 };

test('a missed callback is found by `inspect`, and handled once by `resend`', async () => {
  const night = await startNight(await startRedisBackend(), { service });
  await night.keep();
  await night.pay('no-callback-1');
  const missed = await night.run(toInspect('no-callback-1'));
  expect(readVerdict(missed)).toEqual(['missed', 1]);
  expect(missed.out).toContain('\n  record    none\n');
  expect(missed.out).toContain('npx --no transfer-callbacks resend --to-env CALLBACK_URL no-callback-1\n');

  const resend = toResend('no-callback-1');
  expect(await night.run(resend)).toMatchObject({ code: 0, out: expect.stringMatching(/ processed\n/) as string });
  expect(readVerdict(await night.run(toInspect('no-callback-1')))).toEqual(['handled', 0]);
  expect(await night.run(resend)).toMatchObject({ code: 0, out: expect.stringMatching(/ duplicate\n/) as string });
  expect(night.booked).toEqual(['no-callback-1 SUCCESS']);
});

test('of a stuck handler on Redis `inspect` shows the process and the delivery that hold it', async () => {
  const ends = later();
  const begun: string[] = [];
  const night = await startNight(await startRedisBackend(), {
    // The service gives up its attempts while the handler hangs.
    service: { speed: 1_000, attemptTimeoutMs: 2_000 },
    receiver: {
      async onSuccess(_callback, { delivery }) {
        begun.push(delivery);
        await ends.promise;
      },
    },
  });
  await night.pay('success-1');
  const stuck = await night.run(toInspect('success-1'));
  expect(readVerdict(stuck)).toEqual(['in_progress', 0]);
  expect(stuck.out).toMatch(/ lease left \d+ s\n/);
  const [delivery = expect.fail('The handler did not begin.')] = begun;
  const host = readDelivery(delivery)?.host ?? expect.fail(delivery);
  expect(stuck.out.replaceAll(/\n {12}/g, ' ')).toContain(` by ${host}, process ${process.pid} `);
  expect(stuck.out.replaceAll(/\n {12}/g, '')).toContain(`delivery ${delivery}`);

  ends.resolve();
  await vi.waitUntil(async () => (await night.receiver.inspect(night.findId('success-1'))).state === 'settled');
  expect(readVerdict(await night.run(toInspect('success-1')))).toEqual(['handled', 0]);
  expect(begun).toHaveLength(1);
});

test('of a stuck handler on PostgreSQL `inspect` shows the backend, and ending that rolls its writes back', async () => {
  const backend = await startPostgresBackend();
  await backend.pool.query(
    'CREATE TABLE ledger (entry text); CREATE TABLE accounts (id int); INSERT INTO accounts VALUES (1)',
  );
  const night = await startNight(backend, {
    service: { speed: 1_000, attemptTimeoutMs: 2_000 },
    receiver: {
      async onSuccess({ data }: TransferCallback, { tx }: { tx: PoolClient }) {
        await tx.query('INSERT INTO ledger VALUES ($1)', [data.externalId]);
        await tx.query('SELECT FROM accounts FOR UPDATE');
      },
    },
  });
  const ledger = async (): Promise<unknown[]> => (await backend.pool.query<object>('SELECT entry FROM ledger')).rows;
  await night.keep();
  const blocking = await backend.pool.connect();
  await blocking.query('BEGIN; SELECT FROM accounts FOR UPDATE');
  await night.pay('success-1');
  const stuck = await night.run(toInspect('success-1'));
  expect(readVerdict(stuck)).toEqual(['in_progress', 0]);
  const [, backendPid] = /by payouts, 127\.0\.0\.1, backend\s+(\d+)/.exec(stuck.out) ?? expect.fail(stuck.out);

  await backend.pool.query('SELECT pg_terminate_backend($1)', [backendPid]);
  await blocking.query('ROLLBACK');
  blocking.release();
  await vi.waitUntil(async () => {
    const { state, here } = await night.receiver.inspect(night.findId('success-1'));
    return state === 'free' && here === undefined;
  });
  expect(await ledger()).toEqual([]);
  expect(readVerdict(await night.run(toInspect('success-1')))).toEqual(['missed', 1]);
  expect((await night.run(toResend('success-1'))).code).toBe(0);
  expect(readVerdict(await night.run(toInspect('success-1')))).toEqual(['handled', 0]);
  expect(await ledger()).toEqual([{ entry: 'success-1' }]);
});

test('a conflict is `conflict` where the service gives other facts now, and its record shows what was handled', async () => {
  const night = await startNight(await startRedisBackend());
  await night.pay('flip-1');
  const conflict = await night.run(toInspect('flip-1'));
  expect(readVerdict(conflict)).toEqual(['conflict', 1]);
  expect(conflict.out).toMatch(/\n {2}service {3}SUCCESS since /);
  expect(conflict.out).toMatch(/\["FAILED",.*"flip-1"\]/);
  const again = await night.run(toResend('flip-1'));
  expect(again).toMatchObject({ code: 1, out: expect.stringContaining('← 422 ') as string });
  expect(night.booked).toEqual(['flip-1 FAILED']);
});

test('a conflict is `handled` where the service gives the facts that were handled', async () => {
  const night = await startNight(await startRedisBackend(), { service });
  await night.pay('success-1');
  const forged = transferFailed({ id: night.findId('success-1'), externalId: 'success-1' });
  expect(await post(night.callbackUrl, forged)).toMatchObject({ status: 422 });
  expect(readVerdict(await night.run(toInspect('success-1')))).toEqual(['handled', 0]);
  expect(night.booked).toEqual(['success-1 SUCCESS']);
});

test('a forged callback that was handled is `unfounded`: the service has not finished, or responds with 404', async () => {
  // Nothing becomes final in this night.
  const night = await startNight(await startRedisBackend(), { service: { finalAfterMs: 3_600_000 } });
  await night.create('payout-1');
  expect(readVerdict(await night.run(toInspect('payout-1')))).toEqual(['open', 0]);
  const early = transferSucceeded({ id: night.findId('payout-1'), externalId: 'payout-1' });
  const invented = transferSucceeded();
  for (const forged of [early, invented]) expect(await post(night.callbackUrl, forged)).toMatchObject({ status: 200 });

  const found = await night.run(toInspect('payout-1'));
  expect(readVerdict(found)).toEqual(['unfounded', 1]);
  expect(found.out).toMatch(/\n {2}service {3}PENDING/);
  const unheardOf = await night.run(toInspect(invented.data.id));
  expect(readVerdict(unheardOf)).toEqual(['unfounded', 1]);
  expect(unheardOf.out).toMatch(/\n {2}service {3}.*404/);
  expect((await night.run(toResend('payout-1'))).code).toBe(1);
});

test('a callback that is forgotten is `missed`, and its handler runs again when it is resent', async () => {
  const night = await startNight(await startRedisBackend(), { service });
  await night.keep();
  await night.pay('success-1');
  const resend = toResend('success-1');
  expect((await night.run(resend)).out).toMatch(/ duplicate\n/);

  const id = night.findId('success-1');
  const record = await night.receiver.inspect(id);
  if (record.state !== 'settled') expect.fail(record.state);
  const by = 'ada@merchant.example';
  const reason = 'Booked to the wrong account, INC-341';
  expect(await night.receiver.forget(id, { settled: record.fingerprint, by, reason })).toBe(true);
  expect(night.lines.map(({ level, details }) => [level, details])).toEqual(
    new Array(2).fill(['warn', expect.objectContaining({ delivery: record.delivery, id, by, reason })]),
  );
  expect(readVerdict(await night.run(toInspect('success-1')))).toEqual(['missed', 1]);
  expect(night.booked).toEqual(['success-1 SUCCESS']);

  expect(await night.run(resend)).toMatchObject({ code: 0, out: expect.stringMatching(/ processed\n/) as string });
  expect(readVerdict(await night.run(toInspect('success-1')))).toEqual(['handled', 0]);
  expect(night.booked).toEqual(['success-1 SUCCESS', 'success-1 SUCCESS']);
});

test('while the store is down `inspect` is `undecided`, and afterwards it finds what was lost', async () => {
  const backend = await startRedisBackend();
  const night = await startNight(backend, { receiver: { storeTimeoutMs: 500 } });
  await backend.server.kill();
  await night.pay('success-1');
  const during = await night.run(toInspect('success-1'));
  expect(readVerdict(during)).toEqual(['undecided', 3]);
  expect(during.out).toMatch(/\n {2}service {3}SUCCESS since .*\n {2}record {4}.*ECONNREFUSED/);

  await backend.server.restart();
  // A claim that was sent while the store was down may be granted afterwards, until its release follows it.
  const id = night.findId('success-1');
  await vi.waitUntil(async () => (await night.reconcile(id)).processed === 1);
  expect(readVerdict(await night.run(toInspect('success-1')))).toEqual(['handled', 0]);
  expect(night.booked).toEqual(['success-1 SUCCESS']);
});

test('after a rotation in one place only a payout is `missed`, and `resend` tells which secret the app accepts', async () => {
  const night = await startNight(await startRedisBackend(), { callsWith: 'the-old-secret-of-the-url' });
  await night.keep();
  await night.pay('success-1');
  expect(readVerdict(await night.run(toInspect('success-1')))).toEqual(['missed', 1]);
  const refused = await night.run(toResend('success-1'));
  expect(refused.code).toBe(1);
  expect(refused.out).toMatch(/← 401 .*\nNot acknowledged\.\nA verifier refused the sender/);
  expect((await night.run(toResend('success-1'), `${night.url}/${secret}`)).code).toBe(0);
  expect(readVerdict(await night.run(toInspect('success-1')))).toEqual(['handled', 0]);
});

test('after Redis was emptied nothing is `missed` of what became final before: the handler may have run', async () => {
  const backend = await startRedisBackend();
  const night = await startNight(backend, { service });
  await night.pay('success-1');
  await backend.client.flushall();
  const found = await night.run(toInspect('success-1'));
  expect(readVerdict(found)).toEqual(['missed_or_forgotten', 1]);
  expect(found.out.replaceAll(/\s+/g, ' ')).toContain('Compare the transfer with your own books before');
  const refused = await night.run(toResend('success-1'));
  expect(refused).toMatchObject({ code: 1, out: expect.stringContaining('Not sent.') as string });
  expect(night.booked).toEqual(['success-1 SUCCESS']);
});
