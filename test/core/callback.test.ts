import { describe, expect, test } from 'vitest';
import type { TransferCallback } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import {
  bankAccount,
  bankPayout,
  changed,
  expectRefused,
  received,
  shapes,
  textFields,
  type Json,
  type Loose,
} from './callback-support.js';

function without(callback: TransferCallback, field: string): Loose {
  return {
    event: callback.event,
    data: Object.fromEntries(Object.entries(callback.data).filter(([name]) => name !== field)),
  };
}

/** Rows for `test.each`, which would take a list among plain values for several arguments. */
function each(...values: unknown[]): [string, unknown][] {
  return values.map((value) => [value === undefined ? 'undefined' : JSON.stringify(value), value]);
}

describe.each(shapes)('%s', (_shape, make) => {
  test('a callback is accepted, unchanged', async () => {
    const callback = make();
    const { outcome, handled, status } = await received(callback);
    expect(outcome).toMatchObject({
      outcome: 'processed',
      id: callback.data.id,
      event: callback.event,
      status: callback.data.status,
    });
    expect(status).toBe(200);
    expect(handled).toEqual([callback]);
  });

  test('a callback keeps fields that are not documented, at every level', async () => {
    const callback = make();
    const extra = { list: [1, null, { deep: true }], nothing: null, '': 'nameless' };
    const body = { ...callback, version: 2, data: { ...callback.data, fee: 150, extra, id2: '' } };
    expect((await received(body)).handled).toEqual([body]);
  });

  test.each(['event', 'data'])('a callback is refused without %s', async (field) => {
    const callback = make() as unknown as Json;
    await expectRefused(Object.fromEntries(Object.entries(callback).filter(([name]) => name !== field)), field);
  });

  test.each([[[]], [[{}]]])('a callback is refused with a list for data', async (data) => {
    const { outcome, handled } = await received({ event: make().event, data });
    expect(outcome.outcome).toBe('invalid');
    expect(handled).toEqual([]);
  });

  test.each(each(null, 'SUCCESS', 1, true))('a callback is refused with %s for data', async (_value, data) => {
    await expectRefused({ event: make().event, data }, 'data');
  });

  test.each(
    each(null, '', 'transfer.pending', 'TRANSFER.SUCCESS', ' transfer.success', 'success', 1, ['transfer.success'], {}),
  )('a callback is refused with %s for event', async (_value, event) => {
    await expectRefused({ event, data: make().data }, 'event');
  });

  test.each([...textFields, 'amount', 'status', 'failureReason', 'walletNumber', 'bankAccount', 'paymentMethod'])(
    'a callback is refused without data.%s',
    async (field) => {
      await expectRefused(without(make(), field), `data.${field}`);
    },
  );

  describe.each(textFields)('a callback is refused for data.%s', (field) => {
    test.each(each(undefined, null, 1, true, [], ['text'], {}, { toString: 'text' }))(
      'a callback is refused for the value %s',
      async (_value, value) => {
        await expectRefused(changed(make(), { [field]: value }), `data.${field}`);
      },
    );
  });

  test.each(
    [null, '15000', '', true, [], [15_000], {}, NaN, Infinity, -Infinity, 15_000n, 2 ** 53, -(2 ** 53), 1e21].map(
      (amount) => [amount],
    ),
  )('a callback is refused for data.amount %s', async (amount) => {
    await expectRefused(changed(make(), { amount }), 'data.amount');
  });

  test.each([0, -1, 0.1, 1e-7, 15_000.55, Number.MAX_SAFE_INTEGER, -Number.MAX_SAFE_INTEGER, Number.MIN_VALUE])(
    'a callback is accepted with data.amount %d, because no limit is documented',
    async (amount) => {
      expect((await received(changed(make(), { amount }))).handled[0]?.data.amount).toBe(amount);
    },
  );

  test.each(each(null, '', 'PENDING', 'success', 'Failed', 'SUCCESS ', 1, true, []))(
    'a callback is refused for data.status %s',
    async (_value, status) => {
      await expectRefused(changed(make(), { status }), 'data.status');
    },
  );

  test.each(each(null, '', 'card', 'BANK', 'mobile-money', 'mobile_money ', 1, ['bank'], {}))(
    'a callback is refused for data.paymentMethod %s',
    async (_value, paymentMethod) => {
      await expectRefused(changed(make(), { paymentMethod }), 'data.paymentMethod');
    },
  );

  test.each(each(undefined, 1, true, [], {}))(
    'a callback is refused for data.failureReason %s',
    async (_value, failureReason) => {
      await expectRefused(changed(make(), { failureReason }), 'data.failureReason');
    },
  );
});

describe('fields that must agree', () => {
  test('the event and the status must agree', async () => {
    await expectRefused(changed(transferSucceeded(), { status: 'FAILED' }), 'data.status');
    await expectRefused(changed(transferFailed(), { status: 'SUCCESS' }), 'data.status');
    await expectRefused({ ...transferSucceeded(), event: 'transfer.failed' }, 'data.status');
    await expectRefused({ ...transferFailed(), event: 'transfer.success' }, 'data.status', 'data.failureReason');
  });

  test('a success has no reason for failure, not even an empty one', async () => {
    for (const failureReason of ['', 'insufficient funds']) {
      await expectRefused(changed(transferSucceeded(), { failureReason }), 'data.failureReason');
      await expectRefused(changed(transferSucceeded(bankPayout), { failureReason }), 'data.failureReason');
    }
  });

  test('a failure has a reason or null', async () => {
    for (const failureReason of [null, '', 'insufficient funds', '\u0000 \ud800']) {
      const callback = transferFailed({ failureReason });
      expect((await received(callback)).handled).toEqual([callback]);
    }
  });

  test('a payout to a wallet has its number, and no bank account', async () => {
    for (const make of [transferSucceeded, transferFailed]) {
      await expectRefused(changed(make(), { walletNumber: null }), 'data.walletNumber');
      await expectRefused(changed(make(), { walletNumber: 237_670_000_000 }), 'data.walletNumber');
      await expectRefused(changed(make(), { bankAccount: {} }), 'data.bankAccount');
      await expectRefused(changed(make(), { bankAccount: '1000500001' }), 'data.bankAccount');
      await expectRefused(
        changed(make(), { walletNumber: null, bankAccount: {} }),
        'data.walletNumber',
        'data.bankAccount',
      );
    }
  });

  test('a payout to a bank account has its details, and no wallet', async () => {
    for (const callback of [transferSucceeded(bankPayout), transferFailed(bankPayout)]) {
      await expectRefused(changed(callback, { bankAccount: null }), 'data.bankAccount');
      await expectRefused(changed(callback, { bankAccount: '1000500001' }), 'data.bankAccount');
      await expectRefused(changed(callback, { bankAccount: [bankAccount] }), 'data.bankAccount');
      await expectRefused(changed(callback, { walletNumber: '' }), 'data.walletNumber');
      await expectRefused(changed(callback, { walletNumber: '237670000000' }), 'data.walletNumber');
    }
  });
});
