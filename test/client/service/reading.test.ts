// What `query` resolves with is read as a callback is, although it is read several times.
import { expect, test } from 'vitest';
import { inspectTransfer, reconcileTransfers } from 'transfer-callbacks/client';
import { announced, read, serve, states } from '../../core/service-support.js';
import { listOf } from './support.js';

type Sent = ReturnType<typeof announced>;

/** A `read` that changes what it reads. */
function readInPlace({ event, data }: Sent): object {
  data.amount *= 100;
  return { state: event, id: data.id, externalId: data.reference, amount: data.amount, currency: data.currency };
}

/** As an app in JavaScript calls it. */
const reconcile = (options: object) => reconcileTransfers(options as Parameters<typeof reconcileTransfers>[0]);

test('a read that changes what it reads gives the same amount to every handler, and to inspect', async () => {
  const query = (): Sent => announced('payout.paid');
  for (const confirm of [false, true]) {
    const { receiver, receive, handled } = serve({ read: readInPlace, query }, { confirm });
    if (confirm) expect(await receive(announced('payout.paid'))).toMatchObject({ outcome: 'processed' });
    else expect(await reconcile({ receiver, pending: listOf('7') })).toMatchObject({ processed: 1 });
    expect(handled).toMatchObject([{ data: { amount: 10_000 } }]);
    expect(await inspectTransfer({ receiver, id: '7' })).toMatchObject({
      verdict: 'handled',
      service: { callback: announced('payout.paid') },
    });
  }
});

test('a transfer became final at the time that read returns', async () => {
  const timestamp = '2026-01-15T10:30:00.000Z';
  const withTime = (payload: Sent): object => ({ ...read(payload), timestamp });
  const { receiver } = serve({ read: withTime, query: (): Sent => announced('payout.paid') });
  expect(await inspectTransfer({ receiver, id: '7' })).toMatchObject({ service: { finalAt: new Date(timestamp) } });
});

test('what cannot be copied is read, too', async () => {
  const query = (): object => ({ ...announced('payout.paid'), reload: () => undefined });
  const { receiver, handled } = serve({ query });
  expect(await reconcile({ receiver, pending: listOf('7') })).toMatchObject({ processed: 1 });
  expect(handled).toHaveLength(1);
});

test('a key `__proto__` of a response hands no paid transfer on as another one', async () => {
  const { data } = announced('payout.paid');
  const text = JSON.stringify({ proto: { event: 'payout.returned' }, word: 'payout.paid', data });
  const query = (): unknown => JSON.parse(text.replace('"proto"', '"__proto__"'));
  // As zod before 4.4 does, this sets the prototype of the copy.
  const read = (given: { event?: string; word: string; data: Sent['data'] }): object => {
    const copy = Object.assign({}, given);
    return { state: copy.event ?? copy.word, id: copy.data.id, externalId: copy.data.reference };
  };
  const reversing = { states: { ...states, 'payout.returned': 'REVERSED' }, read, query };
  const { receiver, handled } = serve(reversing, { onReversed: () => undefined, retentionMs: 86_400_000 });
  expect(await reconcile({ receiver, paid: listOf('7') })).toMatchObject({ paid: { unchanged: 1 } });
  expect(handled).toEqual([]);
});
