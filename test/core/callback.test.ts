import { describe, expect, test } from 'vitest';
import { transferCallbackReceiver, type TransferCallback } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { toResponse } from '../../src/http/responses.js';
import { recordingOptions } from '../support/helpers/logger.js';
import { errorBody } from '../support/helpers/post.js';

type Json = Record<string, unknown>;
interface Loose {
  event: unknown;
  data: Json;
}

const bankAccount = { accountNumber: '10005000010123456789', holder: { name: 'Élodie' } };
const bankPayout = { paymentMethod: 'bank', walletNumber: null, bankAccount } as const;
const shapes: [string, () => TransferCallback][] = [
  ['a success to a wallet', () => transferSucceeded()],
  ['a success to a bank account', () => transferSucceeded(bankPayout)],
  ['a failure to a wallet', () => transferFailed()],
  ['a failure to a bank account', () => transferFailed(bankPayout)],
];

/** What a receiver makes of a body, what the response is, and which callbacks have reached a handler. */
async function received(body: unknown) {
  const { handled, options } = recordingOptions();
  const outcome = await transferCallbackReceiver(options).receive(body);
  const { status, body: said } = toResponse(outcome);
  return { outcome, handled, status, body: said };
}

/** Expects a body to be refused, for exactly these places in it, the first of which the response names. */
async function expectRefused(body: unknown, ...paths: string[]): Promise<void> {
  const { outcome, handled, status, body: said } = await received(body);
  const issues = outcome.outcome === 'invalid' ? outcome.issues : [];
  expect(outcome.outcome).toBe('invalid');
  // One place may have several faults: an empty list is no text, and too short a one.
  expect([...new Set(issues.map(({ path }) => path.join('.')))]).toEqual(paths);
  const where = paths[0] === '' ? '' : ` See ${paths[0] ?? ''}.`;
  expect([status, said]).toEqual([400, errorBody(400, `This is not the expected callback.${where}`)]);
  expect(handled).toEqual([]);
}

function changed(callback: TransferCallback, data: Json): Loose {
  return { event: callback.event, data: { ...callback.data, ...data } };
}

function without(object: object, field: string): Json {
  return Object.fromEntries(Object.entries(object).filter(([name]) => name !== field));
}

const textFields = [
  'id',
  'externalId',
  'reference',
  'currency',
  'provider',
  'timestamp',
  'externalReference',
  'vouchercode',
];

/** What each field must not be, whatever the others are. */
const refused: Record<string, unknown[]> = {
  ...Object.fromEntries(textFields.map((field) => [field, [undefined, null, 1, true, [], ['text'], {}]])),
  amount: [null, '15000', '', true, [], {}, NaN, Infinity, -Infinity, 15_000n, 2 ** 53, -(2 ** 53), 1e21],
  status: [null, '', 'PENDING', 'success', 'Failed', 'SUCCESS ', 1, true, []],
  paymentMethod: [null, '', 'card', 'BANK', 'mobile-money', 'mobile_money ', 1, ['bank'], {}],
  failureReason: [undefined, 1, true, [], {}],
};

describe.each(shapes)('%s', (_shape, make) => {
  test('a documented callback is accepted, unchanged, also with fields that are not documented, at every level', async () => {
    const callback = make();
    const extra = { list: [1, null, { deep: true }], nothing: null, '': 'nameless' };
    const more = { ...callback, version: 2, data: { ...callback.data, fee: 150, extra, id2: '' } };
    for (const body of [callback, more]) {
      const { outcome, handled, status } = await received(body);
      const { id, status: final } = callback.data;
      expect(outcome).toMatchObject({ outcome: 'processed', id, event: callback.event, status: final });
      expect(status).toBe(200);
      expect(handled).toEqual([body]);
    }
  });

  test('a callback is refused without one of its fields', async () => {
    const callback = make();
    for (const field of ['event', 'data']) await expectRefused(without(callback, field), field);
    for (const field of Object.keys(callback.data)) {
      await expectRefused({ event: callback.event, data: without(callback.data, field) }, `data.${field}`);
    }
  });

  test('a callback is refused with a value that a field cannot have', async () => {
    const { event, data } = make();
    for (const value of [null, 'SUCCESS', 1, true]) await expectRefused({ event, data: value }, 'data');
    for (const value of [null, '', 'transfer.pending', ' transfer.success', 'success', 1, ['transfer.success'], {}]) {
      await expectRefused({ event: value, data }, 'event');
    }
    for (const [field, values] of Object.entries(refused)) {
      for (const value of values) await expectRefused(changed(make(), { [field]: value }), `data.${field}`);
    }
  });
});

test('any amount is accepted that JSON carries exactly, because no limit is documented', async () => {
  for (const amount of [0, -1, 0.1, 1e-7, 15_000.55, Number.MAX_SAFE_INTEGER, -Number.MAX_SAFE_INTEGER]) {
    expect((await received(transferSucceeded({ amount }))).handled[0]?.data.amount).toBe(amount);
  }
});

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
    const bank = changed(make(), { walletNumber: null, bankAccount: {} });
    await expectRefused(bank, 'data.walletNumber', 'data.bankAccount');
  }
});

test('a payout to a bank account has its details, and no wallet', async () => {
  for (const callback of [transferSucceeded(bankPayout), transferFailed(bankPayout)]) {
    for (const wrong of [null, '1000500001', [bankAccount]]) {
      await expectRefused(changed(callback, { bankAccount: wrong }), 'data.bankAccount');
    }
    for (const walletNumber of ['', '237670000000']) {
      await expectRefused(changed(callback, { walletNumber }), 'data.walletNumber');
    }
  }
});

test('an id has 1 to 255 characters, of any script', async () => {
  const long = ['x'.repeat(255), '😀'.repeat(255), 'e\u0301'.repeat(127)];
  for (const id of [...long, 'x', ' ', `"'\`\\/{}[]<>;:*?$`, '../../etc', '%00%2e%2e', 'é付款مرحباΩ', '__proto__']) {
    const callback = transferSucceeded({ id });
    expect((await received(callback)).handled).toEqual([callback]);
  }
  for (const id of ['', 'x'.repeat(256), '😀'.repeat(256), 'x'.repeat(1_000_000)]) {
    await expectRefused(transferSucceeded({ id }), 'data.id');
  }
});

test('an id with a character that is not printable is refused', async () => {
  const controls = ['id\u0000', 'id\n', '\rid', 'i\td', '\u001b[31mid', 'id\u007f', 'id\u0085'];
  const halves = ['id\ud83d', '\ude00id', '\ude00\ud83d'];
  const separators = ['id\u2028', '\u2029id'];
  const invisible = [
    'id\u200f',
    'id\u202egnp',
    '\u2067id',
    'i\u200bd',
    'i\u200dd',
    'i\u00add',
    '\ufeffid',
    'id\u{e0041}',
  ];
  for (const id of [...controls, ...halves, ...separators, ...invisible]) {
    await expectRefused(transferSucceeded({ id }), 'data.id');
  }
});

test('a timestamp is a time with its zone and any number of decimals', async () => {
  for (const end of ['30:00.000Z', '30:00.1Z', '30:00.123456789Z', '30:00Z', '30:00.000+01:00', '30:00-05:30']) {
    const timestamp = `2024-02-29T10:${end}`;
    expect((await received(transferSucceeded({ timestamp }))).handled[0]?.data.timestamp).toBe(timestamp);
  }
  for (const timestamp of [
    'now',
    '1768473000',
    '2026-01-15',
    '2026-01-15 10:30:00.000Z',
    '2026-01-15T10:30:00.000',
    '2026-01-15T10:30:00.000Z\n',
    '2025-02-29T10:30:00.000Z',
    '2026-01-15T24:00:00.000Z',
  ]) {
    await expectRefused(transferFailed({ timestamp }), 'data.timestamp');
  }
});

test('several faults are named one by one, in the order of the fields, and the response names the first', async () => {
  const wrong = { amount: '1', id: '', vouchercode: null, status: 'FAILED' };
  const paths = ['data.id', 'data.amount', 'data.vouchercode', 'data.status'];
  await expectRefused(changed(transferSucceeded(), wrong), ...paths);
});

test('a body that is no object has one issue, at its top', async () => {
  for (const body of [undefined, null, true, 0, '', 'transfer.success', () => undefined, Symbol('x')]) {
    await expectRefused(body, '');
  }
  await expectRefused({}, 'event');
});

test('a list is refused as a body, and as data', async () => {
  // The first versions of zod 4 take a list for an object, and miss its first field.
  for (const body of [[], [transferSucceeded()], { ...transferSucceeded(), data: [] }]) {
    const { outcome, handled } = await received(body);
    expect([outcome.outcome, handled]).toEqual(['invalid', []]);
  }
});

test('no issue carries a value of the callback', async () => {
  const secretNumber = '237699999999';
  const wallet = { walletNumber: secretNumber, status: secretNumber, id: `${secretNumber}\n` };
  for (const body of [
    changed(transferSucceeded(bankPayout), wallet),
    changed(transferSucceeded(), { paymentMethod: secretNumber }),
    changed(transferSucceeded(), { failureReason: secretNumber, bankAccount: { number: secretNumber } }),
    { event: secretNumber, data: {} },
  ]) {
    const { outcome } = await received(body);
    expect(JSON.stringify(outcome)).not.toContain(secretNumber);
    if (outcome.outcome !== 'invalid') expect.fail(outcome.outcome);
    for (const issue of outcome.issues) expect(Object.keys(issue)).toEqual(['path', 'message']);
  }
});
