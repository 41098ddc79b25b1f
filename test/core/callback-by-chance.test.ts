import { describe, expect, test, vi } from 'vitest';
import fc from '../support/fast-check.js';
import { errorBody } from '../support/post.js';
import {
  amount,
  id,
  received,
  record,
  text,
  textFields,
  timestamp,
  validCallback,
  type Loose,
} from './callback-support.js';

// Random cases take the processor a second or two.
vi.setConfig({ testTimeout: 60_000 });

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
    'one with data.%s out of its domain gets 400 and reaches no handler',
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
