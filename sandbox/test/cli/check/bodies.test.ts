import { expect, test } from 'vitest';
import type { TransferCallback } from 'transfer-callbacks';
import { byHand, check, makeBooks, type Book } from './support.js';

const outcomes = { 'transfer.success': 'SUCCESS', 'transfer.failed': 'FAILED' } as const;

/** Reads the event and the externalId, and nothing else: each payout has one final state. */
function readEventOnly(book: Book, isTrusted: (callback: TransferCallback) => boolean): Promise<string> {
  const known = new Set<string>();
  return byHand(async (callback) => {
    const { externalId } = callback.data;
    if (typeof externalId !== 'string' || !isTrusted(callback)) return 400;
    if (known.has(externalId)) return 200;
    known.add(externalId);
    await book({ data: { externalId, status: outcomes[callback.event] } });
    return 200;
  });
}

const isEvent = ({ event }: TransferCallback): boolean => Object.hasOwn(outcomes, event);
const isConsistent = ({ event, data }: Partial<TransferCallback>): boolean =>
  event !== undefined && [undefined, outcomes[event]].includes(data?.status);

test('a body that was booked once is not lost, and open without a count', async () => {
  const { book, count } = await makeBooks();
  const url = await readEventOnly(book, (callback) => isEvent(callback) && isConsistent(callback));
  const { code, wrong, less, trial } = await check(url, ...count);
  expect([code, wrong, less]).toEqual([0, [], ['flip', 'other-amount', 'undocumented']]);
  expect(trial('unbookable')?.notes).toEqual([
    expect.stringMatching(/^4 of 10: .*missing.*\. Acknowledged and booked once, so not lost\.$/),
  ]);
  const uncounted = await check(url);
  expect([uncounted.code, uncounted.unseen]).toEqual([0, ['wrong-content-type', 'unbookable']]);
});

test('a body whose event and status contradict each other is demanded by no document to be refused', async () => {
  const { book, count } = await makeBooks();
  const { code, trial } = await check(await readEventOnly(book, isEvent), ...count);
  const [because = ''] = trial('undocumented')?.because ?? [];
  expect([code, trial('undocumented')?.verdict]).toEqual([0, 'less strict']);
  expect(because).toContain('the event of a failure with the data of a success');
});

test('a body that was acknowledged and not booked is less strict', async () => {
  const { book, count } = await makeBooks();
  const url = await byHand(async (callback) => {
    if (!isEvent(callback) || !isConsistent(callback)) return 400;
    const { id, externalId, status } = callback.data as Partial<TransferCallback['data']>;
    if (id !== undefined && externalId !== undefined && status !== undefined) await book(callback);
    return 200;
  });
  const { trial } = await check(url, ...count, '--settle', '2');
  expect(trial('unbookable')?.because).toEqual([
    '3 of 10: data.id is missing; data.externalId is missing; data.status is missing. A body that you cannot book counts as received.',
  ]);
});
