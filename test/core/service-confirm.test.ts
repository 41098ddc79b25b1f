import { expect, test, vi } from 'vitest';
import { containing } from '../support/helpers/containing.js';
import { announced, serve, states } from './service-support.js';

const paid = announced('payout.paid');
const bounced = announced('payout.bounced');
const reversing = { states: { ...states, 'payout.returned': 'REVERSED' } };

/** A receiver that asks its service, which tells this of every transfer. */
function asking(told: unknown, definition: object = {}, options: object = {}) {
  const query = vi.fn(() => Promise.resolve(told));
  return { ...serve({ ...definition, query }, { confirm: true, ...options }), query };
}

test('the handler gets what the service was asked for, read as a callback, and not what was sent', async () => {
  const { receive, handled, query } = asking(announced('payout.paid', { amount: '100.00' }));
  expect(await receive(paid)).toMatchObject({ outcome: 'processed' });
  expect(query.mock.calls).toMatchObject([['7', expect.any(Function)]]);
  expect(handled).toMatchObject([{ event: 'transfer.success', data: { id: '7', amount: '100.00' } }]);
});

test.each<[string, unknown, unknown]>([
  ['another state', bounced, paid],
  ['another amount', announced('payout.paid', { amount: 99 }), paid],
  ['another id', announced('payout.paid', { id: 8 }), paid],
  ['a state that is pending', announced('payout.waiting'), paid],
  ['an unknown state', announced('payout.lost'), paid],
  ['what cannot be read', {}, paid],
  ['nothing', undefined, paid],
])('a callback of which the service tells %s is unconfirmed, and no handler runs', async (_what, told, sent) => {
  const { receive, handled } = asking(told);
  expect(await receive(sent)).toMatchObject({ outcome: 'unconfirmed' });
  expect(handled).toEqual([]);
});

test('what needs no handler is not asked for', async () => {
  const { receive, query } = asking(paid);
  expect(await receive(announced('payout.waiting'))).toMatchObject({ outcome: 'ignored' });
  expect(query).not.toHaveBeenCalled();
});

test('a success that the service has taken back is handled as the reversal', async () => {
  const onReversed = vi.fn();
  const { receive, handled } = asking(announced('payout.returned'), reversing, {
    onReversed,
    retentionMs: 60 * 86_400_000,
  });
  for (const outcome of ['processed', 'duplicate']) {
    expect(await receive(paid)).toMatchObject({ outcome, status: 'REVERSED' });
  }
  expect(onReversed.mock.calls).toMatchObject([[{ event: 'transfer.reversed', data: { id: '7' } }, {}]]);
  expect(handled).toEqual([]);
});

test('what was queried is read as a callback, and an event of onOther does not confirm', async () => {
  const query = () => undefined;
  const read = ({ data: { id, status } }: { data: { id: number; status: string } }) => ({
    state: status,
    id,
    externalId: id,
  });
  const withOther = { read, query, states: { ...states, charge: 'OTHER' } };
  const confirmBy = (callback: unknown) => {
    const confirm = () => callback;
    return serve(withOther, { confirm, onOther: () => undefined }).receive({ data: { id: 7, status: 'payout.paid' } });
  };
  expect(await confirmBy({ event: 'any', data: { id: 7, status: 'payout.paid' } })).toMatchObject({
    outcome: 'processed',
  });
  expect(await confirmBy({ id: 7, status: 'payout.paid' })).toMatchObject({ outcome: 'unconfirmed' });
  expect(await confirmBy({ data: { id: 7, status: 'charge' } })).toMatchObject({
    outcome: 'unconfirmed',
    error: { code: 'UNCONFIRMED', message: containing('The transfer that was read is no callback: It is not final.') },
  });
});

test('a key `__proto__` of what was queried reaches no handler', async () => {
  const hostile = JSON.stringify(announced('payout.paid', { note: { inner: 5 } })).replace('"inner"', '"__proto__"');
  const read = ({ event, data }: typeof paid): object => ({ state: event, ...data, externalId: data.reference });
  const { receive, handled } = asking(JSON.parse(hostile), { read });
  expect(await receive(paid)).toMatchObject({ outcome: 'processed' });
  const [{ data }] = handled as [{ data: { note: object } }];
  expect(Object.hasOwn(data.note, '__proto__')).toBe(false);
});
