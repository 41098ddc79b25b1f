// The sandbox makes each situation of docs/operations.md, and the metrics and log lines that the runbook
// tells to look at are there. runbook-verdicts.test.ts follows its commands.
import { transferFailed } from 'transfer-callbacks/testing';
import { expect, test } from 'vitest';
import { post } from '../support/post.js';
import { secret, startMerchantApp, startRedisBackend } from './support.js';

const oldSecret = 'the-old-secret-of-the-url';

test('a missed callback is handled by reconciliation, and counted as missed', async () => {
  const merchant = await startMerchantApp(await startRedisBackend());
  await merchant.pay('no-callback-1');
  expect(merchant.booked).toEqual([]);
  expect(await merchant.reconcile('no-callback-1')).toMatchObject({ processed: 1 });
  expect(merchant.booked).toEqual(['no-callback-1 SUCCESS']);
  expect(await merchant.deliveries('processed', 'reconciliation')).toBe(1);
  expect(await merchant.deliveries('processed')).toBe(0);
});

test('a forged callback is unauthorized and leaves no record', async () => {
  const backend = await startRedisBackend();
  const merchant = await startMerchantApp(backend);
  const forged = transferFailed();
  expect(await post(`${merchant.url}/a-guess`, forged)).toMatchObject({ status: 401 });
  expect(await merchant.deliveries('unauthorized')).toBe(1);
  expect(await backend.client.exists(`transfer-callbacks:${forged.data.id}`)).toBe(0);
  expect(merchant.booked).toEqual([]);
});

test('after a rotation in one place only every callback is refused, and with both secrets none is', async () => {
  const wrong = await startMerchantApp(await startRedisBackend(), { callsWith: oldSecret });
  await wrong.pay('success-1');
  expect(wrong.statuses()).toEqual([401, 401, 401, 401]);
  expect(await wrong.deliveries('unauthorized')).toBe(4);
  for (const { details } of wrong.lines) {
    expect(details).toMatchObject({
      outcome: 'unauthorized',
      issues: [{ message: 'The sender was refused before the body was read.' }],
    });
  }
  expect(wrong.lines).toHaveLength(4);

  const repaired = await startMerchantApp(await startRedisBackend(), {
    accepts: [secret, oldSecret],
    callsWith: oldSecret,
  });
  await repaired.pay('success-2');
  expect(repaired.statuses()).toEqual([200]);
  expect(await repaired.deliveries('processed')).toBe(1);
});
