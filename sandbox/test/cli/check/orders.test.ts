// What `check` says of events in another order, and of states that are not final.
import { expect, test } from 'vitest';
import { razorpay, serveAny, type Razorpay } from './any-endpoint.js';
import { checkNamed, key, privateKeys, servePaystack, type Ways } from './defined-support.js';
import { makeBooks } from './support.js';

const signed = { CALLBACK_SECRET: key };
const fast = ['--settle', '2'];

test('whoever refunds what is no success refunds a payout on its way', async () => {
  const { book, count } = await makeBooks();
  const url = await serveAny(book, (payload: Razorpay) =>
    razorpay(payload, payload.event.startsWith('payout.') ? 'FAILED' : undefined),
  );
  const { wrong, trial } = await checkNamed('razorpayx', url, [...fast, ...count], signed);
  expect(wrong).toEqual(expect.arrayContaining(['pending', 'unknown-state']));
  expect(trial('pending')?.because).toEqual(['A payout without an outcome was booked.']);
});

test('whoever books a payout on its way as paid is found, although it is paid in the end', async () => {
  const { book, count } = await makeBooks();
  const url = await serveAny(book, (payload: Razorpay) =>
    razorpay(payload, payload.event === 'payout.initiated' ? 'SUCCESS' : undefined),
  );
  const { wrong, trial } = await checkNamed('razorpayx', url, [...fast, '--skip', 'forged', ...count], signed);
  expect([wrong, trial('pending')?.because]).toEqual([['pending'], ['A payout without an outcome was booked.']]);
});

test('a state of Wise that follows a success, and is refunded too early, is found', async () => {
  const { book, count } = await makeBooks();
  const states: Record<string, string> = {
    outgoing_payment_sent: 'SUCCESS',
    cancelled: 'FAILED',
    funds_refunded: 'REVERSED',
    bounced_back: 'REVERSED',
  };
  interface Wise {
    data: { resource: { id: number }; current_state: string };
  }
  const url = await serveAny(book, ({ data }: Wise) => {
    const status = states[data.current_state];
    return status === undefined ? 400 : [String(data.resource.id), String(data.resource.id), status];
  });
  const { trial } = await checkNamed('wise', url, [...fast, ...count], { CALLBACK_SECRET: privateKeys.wise ?? '' });
  expect(trial('pending')).toMatchObject({ verdict: 'wrong', because: ['A payout without an outcome was booked.'] });
});

test.each<[what: string, ways: Ways, wrong: string[]]>([
  [
    'each reversal counts',
    { toKey: ({ data }, status) => (status === 'REVERSED' ? `${Math.random()}` : `${data.reference} ${status}`) },
    ['reversed', 'reversed-burst', 'reversed-first'],
  ],
  [
    'reversals are dropped',
    { books: ({ event }, write) => (event === 'transfer.reversed' ? undefined : write()) },
    ['reversed', 'reversed-burst', 'reversed-first', 'success-again'],
  ],
])('where %s, the rows of a reversal are wrong', async (_what, ways, wrong) => {
  const { book, count } = await makeBooks();
  const checked = await checkNamed('paystack', await servePaystack(book, ways), [...fast, ...count], signed);
  expect(checked).toMatchObject({ code: 1, wrong, less: [] });
});

test('a copy that gets 409 for ever is wrong, and 409 while a queue books is not', { timeout: 300_000 }, async () => {
  const { book, count } = await makeBooks();
  const forEver = await checkNamed('paystack', await servePaystack(book, { toCopy: 409 }), [...fast, ...count], signed);
  expect(forEver.wrong).toEqual(expect.arrayContaining(['duplicate', 'failed-duplicate']));
  const until = new Map<string, number>();
  const url = await servePaystack(book, {
    before(callback) {
      const { event = '', data } = callback ?? {};
      const name = `${event} ${String(data?.reference)}`;
      const now = Date.now();
      const ends = until.get(name);
      if (ends === undefined && data !== undefined) until.set(name, now + 2_000);
      return ends !== undefined && now < ends ? 409 : undefined;
    },
    books(_callback, write) {
      setTimeout(() => void write(), 1_500);
      return undefined;
    },
  });
  const queued = await checkNamed('paystack', url, ['--settle', '4', ...count], signed);
  expect(queued.wrong).toEqual([]);
});
