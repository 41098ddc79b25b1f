import { describe, expect, test } from 'vitest';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { bankPayout, changed, expectRefused, received } from './callback-support.js';

test('several faults are named one by one, in the order of the fields, and the response names the first', async () => {
  await expectRefused(
    changed(transferSucceeded(), { amount: '1', id: '', vouchercode: null, status: 'FAILED' }),
    'data.id',
    'data.amount',
    'data.vouchercode',
    'data.status',
  );
});

describe('a body that is no object', () => {
  test.each([undefined, null, true, 0, '', 'transfer.success', () => undefined, Symbol('x')].map((body) => [body]))(
    'a body of %s is refused',
    async (body) => {
      await expectRefused(body, '');
    },
  );

  test.each([[[]], [[transferSucceeded()]]])('a list is refused as a body', async (body) => {
    const { outcome, handled } = await received(body);
    expect(outcome.outcome).toBe('invalid');
    expect(handled).toEqual([]);
  });

  test('an empty object is refused for its event', async () => {
    await expectRefused({}, 'event');
  });
});

test('no issue carries a value of the callback', async () => {
  const secretNumber = '237699999999';
  for (const body of [
    changed(transferSucceeded(bankPayout), {
      walletNumber: secretNumber,
      status: secretNumber,
      id: `${secretNumber}\n`,
    }),
    changed(transferSucceeded(), { paymentMethod: secretNumber }),
    changed(transferSucceeded(), { failureReason: secretNumber, bankAccount: { number: secretNumber } }),
    { event: secretNumber, data: {} },
  ]) {
    const { outcome } = await received(body);
    expect(outcome.outcome).toBe('invalid');
    expect(JSON.stringify(outcome)).not.toContain(secretNumber);
    const issues = outcome.outcome === 'invalid' ? outcome.issues : [];
    for (const issue of issues) expect(Object.keys(issue)).toEqual(['path', 'message']);
  }
});
