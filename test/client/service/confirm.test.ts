// `confirm: true`: the service is asked by its definition, and what that resolves with is handled.
import { describe, expect, test, vi } from 'vitest';
import { memoryStore, transferCallbackReceiver } from 'transfer-callbacks';
import { defineService } from 'transfer-callbacks/client';
import { later } from '../../core/support.js';
import { containing } from '../../support/helpers/containing.js';
import { announced, reversingReceiver, type Status } from '../../support/helpers/reversing.js';
import { hangUp, type Reply } from '../support.js';
import { startPayouts, type Known } from './support.js';

/** What becomes of a callback of this status if the service reports the transfer as `known`. */
async function receiveConfirmed(status: Status, known: Known | undefined, before: readonly Status[] = []) {
  const store = memoryStore();
  const { receiver, ran, service } = await startPayouts(known === undefined ? {} : { a: known }, store);
  for (const each of before) await receiver.receive(announced(each, 'a'));
  const confirming = reversingReceiver(store, { service, confirm: true });
  return { ended: await confirming.receiver.receive(announced(status, 'a')), ran: [...ran, ...confirming.ran] };
}

describe('a callback that the service', () => {
  const contradicted = { code: 'UNCONFIRMED', message: containing('to confirm the event, status of') };
  const open = containing('the service reports the status payout.returning, which is not final.');
  const lost = { ...announced('SUCCESS', 'a'), event: 'payout.lost' };
  const noKey = containing('Expected a key of `states`, got ');
  const otherMoney = announced('REVERSED', 'a', { amount: 99 });
  test.each<[why: string, status: Status, known: Known | undefined, error: object]>([
    ['has as failed', 'SUCCESS', 'FAILED', contradicted],
    ['has as succeeded', 'FAILED', 'SUCCESS', contradicted],
    ['has not reversed', 'REVERSED', 'SUCCESS', contradicted],
    ['has as pending', 'SUCCESS', 'payout.returning', { code: 'NOT_FINAL', message: open }],
    ['does not know', 'SUCCESS', undefined, { code: 'REFUSED', status: 404, authenticationFaults: [] }],
    ['refuses to tell', 'SUCCESS', [400, ''], { code: 'REFUSED', status: 400, authenticationFaults: [] }],
    ['cannot be asked about', 'SUCCESS', [503, ''], { code: 'UNAVAILABLE', status: 503 }],
    ['hangs up on', 'SUCCESS', hangUp, { code: 'UNAVAILABLE', status: undefined }],
    ['gives in an unknown state', 'SUCCESS', [200, lost], { code: 'UNREADABLE_RESPONSE', message: noKey }],
    ['gives with another amount', 'SUCCESS', [200, announced('SUCCESS', 'a', { amount: 99 })], { code: 'UNCONFIRMED' }],
    ['mistakes for another one', 'SUCCESS', [200, announced('SUCCESS', 'b')], { code: 'UNCONFIRMED' }],
    ['gives as another one that was reversed', 'SUCCESS', [200, announced('REVERSED', 'b')], { code: 'UNCONFIRMED' }],
    ['gives as reversed with other money', 'SUCCESS', [200, otherMoney], { code: 'UNCONFIRMED' }],
    ['gives as no JSON', 'SUCCESS', [200, '<html>'], { code: 'UNREADABLE_RESPONSE', status: 200 }],
  ])('%s is unconfirmed, and runs nothing', async (_, status, known, error) => {
    const { ended, ran } = await receiveConfirmed(status, known);
    expect(ended).toMatchObject({ outcome: 'unconfirmed', error });
    expect(ran).toEqual([]);
  });

  test.each<Status>(['SUCCESS', 'FAILED', 'REVERSED'])(
    'has reversed since is the reversal, whatever it announces: %s',
    async (status) => {
      expect((await receiveConfirmed(status, 'REVERSED')).ran).toEqual(['REVERSED a']);
      const late = await receiveConfirmed(status, 'REVERSED', ['SUCCESS']);
      expect([late.ended.outcome, late.ran]).toEqual(['processed', ['SUCCESS a', 'REVERSED a']]);
      const copy = await receiveConfirmed(status, 'REVERSED', ['SUCCESS', 'REVERSED']);
      expect([copy.ended.outcome, copy.ran]).toEqual(['duplicate', ['SUCCESS a', 'REVERSED a']]);
    },
  );
});

test('what `query` ignores, or takes for an event of `onOther`, confirms nothing', async () => {
  for (const [event, why] of [
    ['customer.created', '`read` ignores it'],
    ['charge.paid', 'it is an event of `onOther`'],
  ] as const) {
    const service = defineService({
      read: ({ event: name, data }: ReturnType<typeof announced>) =>
        (name as string) === 'customer.created' ? { ignored: name } : { state: name, ...data },
      states: { 'payout.paid': 'SUCCESS', 'payout.bounced': 'FAILED', 'charge.paid': 'OTHER' },
      query: (id) => ({ ...announced('SUCCESS', id), event }),
    });
    const none = (): void => undefined;
    const receiver = transferCallbackReceiver({
      ...{ service, confirm: true, store: memoryStore(), logger: false },
      ...{ onSuccess: none, onFailed: none, onOther: none },
    });
    expect(await receiver.receive(announced('SUCCESS', 'a'))).toMatchObject({
      outcome: 'unconfirmed',
      error: { code: 'UNREADABLE_RESPONSE', message: containing(why) },
    });
  }
});

test('the receivers of a service share the limits of `confirm: true`, and not those of their own', async () => {
  const gate = later();
  const slow: Reply = (response) => {
    void gate.promise.then(() => response.end(JSON.stringify(announced('SUCCESS', 'a'))));
  };
  const { service, received } = await startPayouts({ a: slow });
  const receive = (confirm: true | { concurrency: number }) =>
    reversingReceiver(memoryStore(), { service, confirm }).receiver.receive(announced('SUCCESS', 'a'));
  // Each has a record of its own, and so each is handled.
  const shared = Array.from({ length: 20 }, () => receive(true));
  await vi.waitUntil(() => received.length === 8);
  const own = Array.from({ length: 2 }, () => receive({ concurrency: 1 }));
  await vi.waitUntil(() => received.length === 10);
  gate.resolve();
  const outcomes = (await Promise.all([...shared, ...own])).map(({ outcome }) => outcome);
  expect(new Set(outcomes)).toEqual(new Set(['processed']));
  expect(received).toHaveLength(22);
});
