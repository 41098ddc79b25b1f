// Endpoints by hand of the documented service, whose verdict is known by reading.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import type { TransferCallback } from 'transfer-callbacks';
import { byHand, check, isWhole, makeBooks, serveBodies, type Book } from './support.js';

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
    expect([code, wrong]).toEqual([1, ['failed-duplicate', 'failed-burst', 'failed-lost']]);
    expect(trial('failed-duplicate')?.because[0]).toBe('One payout was booked 2 times.');
    expect(trial('failed-lost')).toMatchObject({ responses: ['lost', '200'], bookings: 2 });
  }
});

test('a refund for each concurrent copy of a failure is wrong, although one copy after the other is not', async () => {
  const { book, count } = await makeBooks();
  const refunded = new Set<string>();
  const url = await bookByStatus(book, async (callback) => {
    if (refunded.has(callback.data.id)) return;
    await pause(100); // It reads the balance.
    await book(callback);
    refunded.add(callback.data.id);
  });
  const { code, wrong } = await check(url, ...count);
  expect([code, wrong]).toEqual([1, ['failed-burst']]);
});

test.each(['booked as paid', 'refunded, and also booked as paid'])(
  'a failure that is %s is wrong with $STATUS, and named in the last line without it',
  async (what) => {
    const { book, count, ledger } = await makeBooks();
    const seen = new Set<string>();
    const url = await bookByStatus(book, async ({ data }) => {
      if (seen.has(data.id)) return;
      seen.add(data.id);
      if (what.startsWith('refunded')) await book({ data });
      await book({ data: { ...data, status: 'SUCCESS' } });
    });
    const { code, wrong, trial } = await check(url, ...count);
    expect([code, wrong]).toEqual([1, ['failed', 'failed-duplicate', 'failed-burst', 'failed-lost']]);
    expect(trial('failed')?.because).toEqual(['A failed payout was booked as paid.']);
    const blind = await check(url, '--count', `grep -c "^$ID SUCCESS$" ${ledger}`);
    expect([blind.code, blind.unseen]).toEqual([0, ['failed', 'failed-duplicate', 'failed-burst', 'failed-lost']]);
    expect(blind.result?.unseen).toContain('whether a failed payout is booked as a failure ($STATUS in --count)');
  },
);

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

/** The fields of a callback that are strings. */
const texts = [
  'id',
  'externalId',
  'reference',
  'currency',
  'provider',
  'externalReference',
  'vouchercode',
  'timestamp',
];
const isText = (value: unknown): value is string => typeof value === 'string';

/** Whether all of a callback is as documented. */
function isDocumented({ event, data }: { event: string; data: Readonly<Record<string, unknown>> }): boolean {
  const { id, status, amount, timestamp, paymentMethod, walletNumber, bankAccount, failureReason } = data;
  const isAccount = typeof bankAccount === 'object' && bankAccount !== null && !Array.isArray(bankAccount);
  return (
    texts.every((name) => isText(data[name])) &&
    /^[^\p{Cc}]{1,255}$/u.test(String(id)) &&
    isText(status) &&
    status === (outcomes as Record<string, unknown>)[event] &&
    typeof amount === 'number' &&
    !Number.isNaN(Date.parse(String(timestamp))) &&
    (status === 'SUCCESS' ? failureReason === null : isText(failureReason)) &&
    ((paymentMethod === 'mobile_money' && isText(walletNumber) && bankAccount === null) ||
      (paymentMethod === 'bank' && walletNumber === null && isAccount))
  );
}

test("an endpoint that knows a payout by the service's id and amount, and is slow and strict, is right", async () => {
  const { book, count, folder } = await makeBooks();
  const payouts = join(folder, 'payouts');
  const booked = new Map<string, string>();
  const busy = new Set<string>();
  const url = await serveBodies(async (body, { headers }) => {
    if (headers['x-token'] !== 'the-token') return 401;
    if (headers['content-type'] !== 'application/json') return 415;
    const callback = JSON.parse(body) as TransferCallback;
    if (!isDocumented({ ...callback, data: { ...callback.data } })) return 400;
    const { id, externalId, status, amount, currency } = callback.data;
    const facts = JSON.stringify([externalId, status, amount, currency]);
    if (booked.has(id)) return booked.get(id) === facts ? 200 : 422;
    const known = await readFile(payouts, 'utf8');
    if (!known.split('\n').includes(`${id} ${amount} ${currency}`)) return 404;
    if (busy.has(id)) return 409;
    busy.add(id);
    await pause(700);
    await book(callback);
    booked.set(id, facts);
    busy.delete(id);
    return 200;
  });
  const prepare = ['--prepare', `echo "$TRANSFER_ID $AMOUNT $CURRENCY" >> ${payouts}`];
  const args = ['--header', 'x-token: the-token', '--forged', url, '--strict', ...prepare];
  expect(await check(url, ...args, ...count)).toMatchObject({ code: 0, wrong: [], unseen: [] });
});

test.runIf(spawnSync('python3', ['--version']).status === 0)(
  'an endpoint in Python, one request at a time, that never reads data.id is not wrong',
  async () => {
    const { folder, ledger } = await makeBooks();
    const payouts = join(folder, 'payouts');
    await writeFile(payouts, '');
    const child = spawn('python3', [fileURLToPath(new URL('slow-and-strict.py', import.meta.url))], {
      env: { ...process.env, LEDGER: ledger, PAYOUTS: payouts },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    onTestFinished(() => void child.kill());
    const [url] = (await once(createInterface(child.stdout), 'line')) as [string];
    const count = `grep -c "^$ID $([ $STATUS = SUCCESS ] && echo paid || echo refund)$" ${ledger}`;
    const prepare = `echo "$ID" >> ${payouts}`;
    const { code, wrong, less, unseen, trial } = await check(url, '--prepare', prepare, '--count', count);
    expect([code, wrong, less, unseen]).toEqual([0, [], ['other-amount', 'undocumented'], []]);
    expect(trial('unbookable')?.notes).toEqual([expect.stringContaining('data.id is missing')]);
  },
);
