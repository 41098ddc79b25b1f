import { describe, expect, test } from 'vitest';
import {
  memoryStore,
  transferCallbackReceiver,
  transferCallbackSchema,
  type TransferCallback,
} from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { toFingerprint } from '../../src/core/facts.js';
import { toAnswer } from '../../src/http/answers.js';
import fc from '../support/fast-check.js';
import { errorBody } from '../support/post.js';

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

/** What a receiver makes of a body, what the wire says, and which callbacks have reached a handler. */
async function received(body: unknown) {
  const handled: TransferCallback[] = [];
  const note = (callback: TransferCallback): number => handled.push(callback);
  const receiver = transferCallbackReceiver({ store: memoryStore(), onSuccess: note, onFailed: note, logger: false });
  const outcome = await receiver.receive(body);
  const { status, body: said } = toAnswer(outcome);
  return { outcome, handled, status, body: said };
}

/** Expects a body to be refused, for exactly these places in it, the first of which the answer names. */
async function expectRefused(body: unknown, ...paths: string[]): Promise<void> {
  const { outcome, handled, status, body: said } = await received(body);
  const issues = outcome.outcome === 'invalid' ? outcome.issues : [];
  expect(outcome.outcome).toBe('invalid');
  // One place may have several faults: an empty list is no text, and too short a one.
  expect([...new Set(issues.map(({ path }) => path.join('.')))]).toEqual(paths);
  const where = paths[0] === '' ? '' : `: see ${paths[0] ?? ''}`;
  expect([status, said]).toEqual([400, errorBody(400, `This is not a documented callback${where}.`)]);
  expect(handled).toEqual([]);
}

function changed(callback: TransferCallback, data: Json): Loose {
  return { event: callback.event, data: { ...callback.data, ...data } };
}

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

  test.each([
    '2026-01-15T10:30:00.000Z',
    '2026-01-15T10:30:00.1Z',
    '2026-01-15T10:30:00.123456789Z',
    '2026-01-15T10:30:00Z',
    '2024-02-29T23:59:59.999Z',
    '1970-01-01T00:00:00.000Z',
    '9999-12-31T23:59:59.999Z',
  ])('a callback is accepted with data.timestamp %s', async (timestamp) => {
    expect((await received(changed(make(), { timestamp }))).handled[0]?.data.timestamp).toBe(timestamp);
  });

  test.each([
    '',
    'now',
    '2026-01-15',
    '10:30:00.000Z',
    '2026-01-15T10:30:00.000',
    '2026-01-15T10:30:00.000+00:00',
    '2026-01-15T10:30:00.000+01:00',
    '2026-01-15 10:30:00.000Z',
    '2026-01-15T10:30:00,000Z',
    '2026-01-15T10:30:00.Z',
    '2026-02-30T10:30:00.000Z',
    '2025-02-29T10:30:00.000Z',
    '2026-13-01T10:30:00.000Z',
    '2026-00-01T10:30:00.000Z',
    '2026-01-00T10:30:00.000Z',
    '2026-01-15T24:00:00.000Z',
    '2026-01-15T10:60:00.000Z',
    '2026-01-15T10:30:61.000Z',
    '2026-1-15T10:30:00.000Z',
    '26-01-15T10:30:00.000Z',
    '20260115T103000Z',
    ' 2026-01-15T10:30:00.000Z',
    '2026-01-15T10:30:00.000Z ',
    '2026-01-15T10:30:00.000Z\n',
    '２０２６-01-15T10:30:00.000Z',
    'Thu, 15 Jan 2026 10:30:00 GMT',
    '1768473000',
  ])('a callback is refused for data.timestamp %j', async (timestamp) => {
    await expectRefused(changed(make(), { timestamp }), 'data.timestamp');
  });
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

  test('several faults are named one by one, in the order of the fields, and the answer names the first', async () => {
    await expectRefused(
      changed(transferSucceeded(), { amount: '1', id: '', vouchercode: null, status: 'FAILED' }),
      'data.id',
      'data.amount',
      'data.vouchercode',
      'data.status',
    );
  });
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

describe('data.id', () => {
  const grapheme = 'e\u0301';
  test.each([
    ['one character', 'x'],
    ['255 characters', 'x'.repeat(255)],
    ['255 characters of four bytes', '😀'.repeat(255)],
    ['127 characters with an accent of their own', grapheme.repeat(127)],
    ['a space', ' '],
    ['quotes, slashes and braces', `"'\`\\/{}[]<>;:*?$`],
    ['a way up', '../../etc'],
    ['percent signs', '%00%2e%2e'],
    ['many scripts', 'é付款مرحباΩ'],
    ['names of fields that every object has', '__proto__'],
  ])('data.id may be %s', async (_what, id) => {
    const callback = transferSucceeded({ id });
    expect((await received(callback)).handled).toEqual([callback]);
  });

  test.each([
    ['empty', ''],
    ['256 characters', 'x'.repeat(256)],
    ['256 characters of four bytes', '😀'.repeat(256)],
    ['a megabyte', 'x'.repeat(1_000_000)],
    ['NUL', 'id\u0000'],
    ['a newline', 'id\n'],
    ['a carriage return', '\rid'],
    ['a tab', 'i\td'],
    ['escape', '\u001b[31mid'],
    ['delete', 'id\u007f'],
    ['a C1 control', 'id\u0085'],
    ['a lone high surrogate', 'id\ud83d'],
    ['a lone low surrogate', '\ude00id'],
    ['surrogates the wrong way round', '\ude00\ud83d'],
    ['a right-to-left mark', 'id\u200f'],
    ['a right-to-left override', 'id\u202egnp'],
    ['a right-to-left isolate', '\u2067id\u2069'],
    ['a zero width space', 'i\u200bd'],
    ['a zero width joiner', 'i\u200dd'],
    ['a soft hyphen', 'i\u00add'],
    ['a byte order mark', '\ufeffid'],
    ['an invisible tag', 'id\u{e0041}'],
  ])('a body of %s is refused', async (_what, id) => {
    const { outcome, status, handled, body } = await received(transferSucceeded({ id }));
    const issues = outcome.outcome === 'invalid' ? outcome.issues : [];
    expect(new Set(issues.map(({ path }) => path.join('.')))).toEqual(new Set(['data.id']));
    expect([status, body]).toEqual([400, errorBody(400, 'This is not a documented callback: see data.id.')]);
    expect(handled).toEqual([]);
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

// Any text whatsoever, lone surrogates and control characters included.
const text = fc.string({
  unit: fc.oneof(
    fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
    fc.constantFrom('\ud800', '\udfff', '\u202e'),
  ),
});
const id = fc
  .string({
    unit: fc.oneof(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 1 }), fc.constantFrom('"', ',', '😀', '付')),
    minLength: 1,
    maxLength: 60,
  })
  .filter((value) => /^[^\p{Cc}\p{Cf}\p{Cs}]+$/u.test(value) && Array.from(value).length <= 255);
const amount = fc
  .oneof(fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true }))
  .filter((value) => !Number.isInteger(value) || Number.isSafeInteger(value));
const timestamp = fc
  .date({ min: new Date('0000-01-01T00:00:00Z'), max: new Date('9999-12-31T23:59:59.999Z'), noInvalidDate: true })
  .map((date) => date.toISOString());
const record = fc.dictionary(
  text.filter((key) => key !== '__proto__'),
  fc.jsonValue(),
);
const known = new Set([
  ...textFields,
  'amount',
  'status',
  'failureReason',
  'walletNumber',
  'bankAccount',
  'paymentMethod',
]);
const extra = record.map((all) => Object.fromEntries(Object.entries(all).filter(([name]) => !known.has(name))));

const validCallback: fc.Arbitrary<Loose> = fc
  .record({
    facts: fc.record({
      id,
      externalId: text,
      reference: text,
      amount,
      currency: text,
      provider: text,
      timestamp,
      externalReference: text,
      vouchercode: text,
    }),
    payout: fc.oneof(
      fc.record({ paymentMethod: fc.constant('mobile_money'), walletNumber: text, bankAccount: fc.constant(null) }),
      fc.record({ paymentMethod: fc.constant('bank'), walletNumber: fc.constant(null), bankAccount: record }),
    ),
    ending: fc.oneof(
      fc.record({ status: fc.constant('SUCCESS'), failureReason: fc.constant(null) }),
      fc.record({ status: fc.constant('FAILED'), failureReason: fc.option(text) }),
    ),
    extra,
  })
  .map(({ facts, payout, ending, extra }) => ({
    event: ending.status === 'SUCCESS' ? 'transfer.success' : 'transfer.failed',
    data: { ...extra, ...facts, ...payout, ...ending },
  }));

describe('callbacks made by chance', () => {
  test('every valid callback is accepted and reaches the handler unchanged', async () => {
    await fc.assert(
      fc.asyncProperty(validCallback, async (callback) => {
        const { handled, status } = await received(callback);
        expect(status).toBe(200);
        expect(handled).toEqual([callback]);
      }),
      { numRuns: 500 },
    );
  });

  test('every valid callback is the same, with the same fingerprint, after it was JSON', () => {
    fc.assert(
      fc.property(validCallback, (callback) => {
        const parsed = transferCallbackSchema.parse(callback);
        const again = transferCallbackSchema.parse(JSON.parse(JSON.stringify(callback)));
        // JSON has no -0.
        expect(JSON.stringify(again)).toBe(JSON.stringify(parsed));
        expect(toFingerprint(again)).toBe(toFingerprint(parsed));
      }),
      { numRuns: 500 },
    );
  });

  const notText = fc.oneof(
    fc.integer(),
    fc.boolean(),
    fc.constant(null),
    fc.array(text),
    fc.object(),
    fc.constant(undefined),
  );
  const noWord = (...words: unknown[]): fc.Arbitrary<unknown> =>
    fc.oneof(notText, text).filter((value) => !words.includes(value));
  const notBoth = fc.oneof(fc.integer(), fc.boolean(), fc.array(text), fc.constant(undefined));
  /** What each field must not be, given the rest of the callback. */
  const outside: Record<string, (callback: Loose) => fc.Arbitrary<unknown>> = {
    ...Object.fromEntries(textFields.map((field) => [field, () => notText])),
    id: () =>
      fc.oneof(
        notText,
        fc.constant(''),
        fc.string({ minLength: 256, maxLength: 300 }),
        fc.tuple(id, fc.constantFrom('\n', '\u0000', '\u202e', '\ud800', '\u200b'), id).map((parts) => parts.join('')),
      ),
    timestamp: () =>
      fc.oneof(
        notText,
        text,
        timestamp.map((value) => value.slice(0, -1)),
        timestamp.map((value) => `${value}Z`),
      ),
    amount: () => fc.oneof(text, fc.constantFrom(null, undefined, true, NaN, Infinity), amount.map(String)),
    status: ({ event }) => noWord(event === 'transfer.success' ? 'SUCCESS' : 'FAILED'),
    paymentMethod: () => noWord('bank', 'mobile_money'),
    failureReason: ({ event }) =>
      event === 'transfer.success' ? fc.oneof(notBoth, text, record) : fc.oneof(notBoth, record),
    walletNumber: ({ data }) =>
      data.paymentMethod === 'bank' ? fc.oneof(notBoth, text) : fc.oneof(notBoth, fc.constant(null)),
    bankAccount: ({ data }) =>
      data.paymentMethod === 'bank' ? fc.oneof(notBoth, text, fc.constant(null)) : fc.oneof(notBoth, record),
  };

  test.each(Object.keys(outside))(
    'one with data.%s out of its domain is answered 400 and reaches no handler',
    async (field) => {
      const nearlyValid = validCallback.chain((callback) =>
        (outside[field]?.(callback) ?? fc.constant(null)).map((value) => ({
          event: callback.event,
          data: { ...callback.data, [field]: value },
        })),
      );
      await fc.assert(
        fc.asyncProperty(nearlyValid, async (body) => {
          const { outcome, handled, status, body: said } = await received(body);
          expect(outcome.outcome).toBe('invalid');
          expect([status, said]).toEqual([
            400,
            errorBody(400, `This is not a documented callback: see data.${field}.`),
          ]);
          expect(handled).toEqual([]);
        }),
        { numRuns: 100 },
      );
    },
  );

  test('a callback with another event is refused with 400 and reaches no handler', async () => {
    const body = fc.tuple(validCallback, noWord('transfer.success', 'transfer.failed'));
    await fc.assert(
      fc.asyncProperty(body, async ([callback, event]) => {
        const { handled, status } = await received({ ...callback, event });
        expect(status).toBe(400);
        expect(handled).toEqual([]);
      }),
      { numRuns: 100 },
    );
  });

  test('any JSON is accepted as a callback or refused, and nothing throws', async () => {
    await fc.assert(
      fc.asyncProperty(fc.anything({ withNullPrototype: true }), async (anything) => {
        expect((await received(anything)).outcome.outcome).toBe('invalid');
      }),
      { numRuns: 500 },
    );
  });
});

describe('the fingerprint', () => {
  const facts = fc.record({
    status: fc.constantFrom('SUCCESS' as const, 'FAILED' as const),
    amount,
    currency: text,
    externalId: text,
  });
  const quoting = fc.string({ unit: fc.constantFrom('"', ',', '\\', '[', ']', ' ', '1', 'X', '\u2028', '\ud800') });
  const trickyFacts = fc.record({
    status: fc.constantFrom('SUCCESS' as const, 'FAILED' as const),
    amount,
    currency: quoting,
    externalId: quoting,
  });
  const of = (data: Record<string, unknown>): string =>
    toFingerprint({ data: { id: 'x', ...data } } as unknown as TransferCallback);

  test('the fingerprint is plain JSON of the four facts', () => {
    const { data } = transferSucceeded({ externalId: 'payout "1", \\2', amount: 0.1 });
    expect(of({ ...data })).toBe('["SUCCESS",0.1,"XAF","payout \\"1\\", \\\\2"]');
  });

  test('the fingerprint is the same for the same facts, whatever else differs', () => {
    fc.assert(
      fc.property(facts, record, record, (same, one, other) => {
        expect(of({ ...one, ...same })).toBe(of({ ...other, ...same }));
      }),
    );
  });

  test('the fingerprint differs when one of the facts differs', () => {
    const change = fc.oneof(
      fc.record({ currency: text }),
      fc.record({ externalId: text }),
      fc.record({ amount }),
      fc.constantFrom({ status: 'SUCCESS' }, { status: 'FAILED' }),
    );
    fc.assert(
      fc.property(facts, change, (before, difference) => {
        const after = { ...before, ...difference };
        const equal = (Object.keys(before) as (keyof typeof before)[]).every((name) => before[name] === after[name]);
        expect(of(before) === of(after)).toBe(equal);
      }),
      { numRuns: 1_000 },
    );
  });

  test('the fingerprint is unambiguous: no quote or comma in one fact makes it another', () => {
    fc.assert(
      fc.property(trickyFacts, trickyFacts, (one, other) => {
        const equal = (Object.keys(one) as (keyof typeof one)[]).every((name) => one[name] === other[name]);
        expect(of(one) === of(other)).toBe(equal);
        const { amount, ...texts } = one;
        // What was written can be read back.
        expect(JSON.parse(of(one))).toEqual([texts.status, amount + 0, texts.currency, texts.externalId]);
      }),
      { numRuns: 1_000 },
    );
  });

  test('the fingerprint of an amount differs from that of its text', () => {
    expect(of({ status: 'SUCCESS', amount: 1, currency: 'XAF', externalId: 'a' })).not.toBe(
      of({ status: 'SUCCESS', amount: '1', currency: 'XAF', externalId: 'a' }),
    );
  });
});
