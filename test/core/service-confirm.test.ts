import { expect, test, vi } from 'vitest';
import { containing } from '../support/helpers/containing.js';
import { announced, serve, states } from './service-support.js';

const paid = announced('payout.paid');

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

test('what needs no handler is not asked for', async () => {
  const { receive, query } = asking(paid);
  expect(await receive(announced('payout.waiting'))).toMatchObject({ outcome: 'ignored' });
  expect(query).not.toHaveBeenCalled();
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
