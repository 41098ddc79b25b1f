import type { Logger, TransferCallback, TransferCallbackOutcome } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { transferService } from 'transfer-callbacks/client';
import { expect, test, vi } from 'vitest';
import { z } from 'zod/v4';
import { toResponse } from '../../src/http/responses.js';
import { toPrintable } from '../../src/lib/text.js';
import type { StandardSchema } from '../../src/lib/standard-schema.js';
import fc from '../support/helpers/fast-check.js';
import { receiverOf } from './support.js';
import { listen } from '../support/helpers/listen.js';

/** Any text whatsoever, lone surrogates and control characters included. */
const text = fc.string({
  unit: fc.oneof(
    fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
    fc.constantFrom('\ud800', '\udfff', '\u202e'),
  ),
});

const unprintable = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;

test.each([
  ['a newline', 'a\nb', 'a\\u{a}b'],
  ['NUL and a C1 control', '\0\u009b', '\\u{0}\\u{9b}'],
  ['a lone surrogate', 'a\ud83d', 'a\\u{d83d}'],
  ['text of any language', 'é付😀', 'é付😀'],
  ['256 characters', 'x'.repeat(256), 'x'.repeat(255)],
  ['256 characters of four bytes', '😀'.repeat(256), '😀'.repeat(255)],
  ['a character of four bytes at the cut', `${'x'.repeat(254)}😀😀`, `${'x'.repeat(254)}😀`],
  ['a megabyte of newlines', '\n'.repeat(1_000_000), '\\u{a}'.repeat(255)],
])('a text with %s is printable', (_what, given, printable) => {
  expect(toPrintable(given)).toBe(printable);
});

test('every text is printable, and the same if it was before', () => {
  fc.assert(
    fc.property(text, (given) => {
      expect(toPrintable(given)).not.toMatch(unprintable);
      if (!unprintable.test(given)) expect(toPrintable(given)).toBe(given);
    }),
    { numRuns: 1_000 },
  );
});

/** Each changes how a line is displayed, or is longer than a line should be. */
const strange = [
  ['a right-to-left override', '\u202e'],
  ['NUL', '\0'],
  ['a lone surrogate', '\ud800'],
  ['90 000 characters', 'x'.repeat(90_000)],
] as const;

/** Takes any amount, and names every key that it does not know. */
const schema = z.object({
  event: z.enum(['transfer.success', 'transfer.failed']),
  data: z.strictObject({
    ...Object.fromEntries(Object.keys(transferSucceeded().data).map((name) => [name, z.unknown()])),
    extra: z.record(z.string(), z.number()).optional(),
  }),
}) as unknown as StandardSchema<TransferCallback>;

/** Returns every key and every text in `value`. */
function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, each]) => [key, ...textsIn(each)]);
}

test.each(strange)('%s in a text of a sender is printable wherever it is shown', async (_what, given) => {
  const shown: unknown[] = [];
  const show = (what: unknown): void => void shown.push(structuredClone(what));
  const logger: Logger = { info: show, warn: show, error: show };
  const onOutcome = (outcome: TransferCallbackOutcome): void => {
    show(outcome);
    show(toResponse(outcome));
  };
  for (const name of ['outcome', 'forgotten']) listen(`transfer-callbacks:${name}`, show);
  for (const name of ['confirm', 'handle']) listen(`tracing:transfer-callbacks:${name}:start`, show);
  const confirm = vi.fn<(callback: TransferCallback) => true>(() => true);
  const onSuccess = vi.fn();
  const receiver = receiverOf({ logger, onOutcome, service: transferService({ payload: schema }), confirm, onSuccess });

  const callback = transferSucceeded({ externalId: given, currency: given, amount: given as never });
  Object.assign(callback.data, { timestamp: given });
  const { id } = callback.data;
  expect(await receiver.receive(callback)).toMatchObject({ outcome: 'processed' });
  const other = transferSucceeded({ ...callback.data, provider: given, currency: `${given}2` });
  const changed = transferSucceeded({ ...callback.data, amount: 1 });
  expect(await receiver.receive(changed)).toMatchObject({ outcome: 'conflict' });
  const invalid = { ...other, data: { ...other.data, [given]: 1, extra: { [given]: given } } };
  expect(await receiver.receive(invalid)).toMatchObject({ outcome: 'invalid' });
  expect(await receiver.receive(invalid, { verify: () => false })).toMatchObject({ outcome: 'unauthorized' });
  const record = await receiver.inspect(id);
  if (record.state !== 'handled') expect.fail();
  expect(await receiver.forget(id, { fingerprint: record.fingerprint, by: 'ada', reason: 'why' })).toBe(true);

  // Each outcome, its response and its two reports, the contexts of two channels twice, two lines and a message of
  // `forget`.
  expect(shown).toHaveLength(4 * 4 + 3 + 3);
  for (const each of shown) {
    expect(textsIn(each).filter((found) => unprintable.test(found))).toEqual([]);
    expect(textsIn(each).join('').length).toBeLessThan(3_000);
  }
  // The app and the store have the callback as it came.
  expect(confirm.mock.calls[0]?.[0].data).toEqual(callback.data);
  expect(onSuccess.mock.calls).toEqual([[callback, expect.anything()]]);
  expect(JSON.parse(record.fingerprint)).toEqual(['SUCCESS', given, given, given]);
});
