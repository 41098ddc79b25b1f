import { expect, test } from 'vitest';
import type { TransferCallback } from 'transfer-callbacks';
import { byHand, check, isWhole, makeBooks, type Book } from './support.js';

/** Rows that a careful route by hand need not pass. */
const stricter = ['flip', 'other-amount', 'undocumented'];

/** Books each success once, and a failure as `bookFailure` does. */
function bookByStatus(book: Book, bookFailure: (callback: TransferCallback) => Promise<void>): Promise<string> {
  const seen = new Set<string>();
  return byHand(async (callback) => {
    if (!isWhole(callback)) return 400;
    if (callback.data.status === 'FAILED') {
      await bookFailure(callback);
      return 200;
    }
    if (seen.has(callback.data.id)) return 200;
    seen.add(callback.data.id);
    await book(callback);
    return 200;
  });
}

test('a refund for each copy of a failure is found, with and without $STATUS', async () => {
  const { book, count, ledger } = await makeBooks();
  const url = await bookByStatus(book, book);
  for (const args of [count, ['--count', `grep -c "^$ID " ${ledger}`]]) {
    const { code, wrong, trial } = await check(url, ...args);
    expect([code, wrong.filter((name) => !stricter.includes(name))]).toEqual([
      1,
      ['failed-duplicate', 'failed-burst', 'failed-lost'],
    ]);
    expect(trial('failed-duplicate')?.because[0]).toBe('One payout was booked 2 times.');
    expect(trial('failed-lost')).toMatchObject({ responses: ['lost', '200'], bookings: 2 });
  }
});

test('a failure that is booked as paid is wrong with $STATUS, and named in the last line without it', async () => {
  const { book, count, ledger } = await makeBooks();
  const seen = new Set<string>();
  const url = await bookByStatus(book, async ({ data }) => {
    if (seen.has(data.id)) return;
    seen.add(data.id);
    await book({ data: { ...data, status: 'SUCCESS' } });
  });
  const { code, wrong, trial } = await check(url, ...count);
  expect([code, wrong[0], trial('failed')?.because]).toEqual([1, 'failed', ['A failed payout was booked as paid.']]);
  const blind = await check(url, '--count', `grep -c "^$ID SUCCESS$" ${ledger}`);
  expect([blind.code, blind.unseen]).toEqual([0, ['failed', 'failed-duplicate', 'failed-burst', 'failed-lost']]);
  expect(blind.result?.unseen).toContain('whether a failed payout is booked as a failure ($STATUS in --count)');
});

test('a lost refund is found', async () => {
  const { book, count } = await makeBooks();
  const url = await bookByStatus(book, () => Promise.resolve());
  const { code, trial } = await check(url, ...count, '--settle', '3');
  expect([code, trial('failed')?.because]).toEqual([1, ['It was acknowledged and never booked: it is lost.']]);
});

test('a contradiction that changed nothing is less strict', async () => {
  const { book, count } = await makeBooks();
  const outcomes = new Set<string>();
  const url = await byHand(async (callback) => {
    if (!isWhole(callback)) return 400;
    if (outcomes.has(callback.data.id)) return 200;
    outcomes.add(callback.data.id);
    await book(callback);
    return 200;
  });
  const because = ['SUCCESS was acknowledged after FAILED: you have refunded what was paid, and nobody learns of it.'];
  const { code, trial } = await check(url, ...count);
  expect([code, trial('flip')]).toMatchObject([0, { verdict: 'less strict', bookings: 1, because }]);
});
