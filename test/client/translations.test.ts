// Your own code that translates what the documented service has responded: `readTransaction` and `schema`.
import { expect, test } from 'vitest';
import { memoryStore, transferCallbackReceiver, type transferCallbackSchema } from 'transfer-callbacks';
import { inspectTransfer, reconcileTransfers, type Transaction } from 'transfer-callbacks/client';
import { transferSucceeded } from 'transfer-callbacks/testing';
import type { TransferServiceOptions } from '../../src/client/service/transfer.js';
import { containing } from '../support/helpers/containing.js';
import { startQueries, transfers } from './support.js';

const handlers = { onSuccess: () => undefined, onFailed: () => undefined, logger: false } as const;

const bug = (): never => {
  throw new TypeError('no IBAN');
};
/** The body of a response, and the transaction in it. */
const find = (body: unknown) => (body as { data: Transaction }).data;

/** Runs `broken` for the first 12 transfers. Ten failures of the service would end a run. */
const breakFor = <Given, Made>(toId: (given: Given) => string, broken: () => unknown, make: (given: Given) => Made) => {
  return (given: Given): Made => (Number(toId(given).slice(3)) < 12 ? (broken() as Made) : make(given));
};

const faults: [fault: string, options: Partial<TransferServiceOptions>, message: string][] = [
  [
    'a readTransaction that throws',
    { readTransaction: breakFor((body) => find(body).id, bug, find) },
    '`readTransaction` threw: no IBAN',
  ],
  [
    'a readTransaction that returns null',
    {
      readTransaction: breakFor(
        (body) => find(body).id,
        () => null,
        find,
      ),
    },
    'No transaction with id, externalId and status was found',
  ],
  [
    'a readTransaction that rejects',
    {
      readTransaction: breakFor(
        (body) => find(body).id,
        () => Promise.reject(new Error('late')),
        find,
      ),
    },
    'Expected `readTransaction` to be synchronous, got a promise.',
  ],
];

test.each(faults)(
  '%s is not taken for an outage, and the transfers behind it are handled',
  async (_, options, message) => {
    const { client } = await startQueries((id) => [200, { data: transferSucceeded({ id }).data }], options);
    const receiver = transferCallbackReceiver({
      ...{ store: memoryStore(), onSuccess: () => undefined, onFailed: () => undefined, logger: false },
      service: client,
      confirm: true,
    });
    const report = await reconcileTransfers({ receiver, pending: transfers(15), concurrency: 1 });
    expect(report).toMatchObject({ processed: 3, failed: 12, stopped: undefined });
    const error = { code: 'UNREADABLE_RESPONSE', message: containing(message) };
    expect(report.problems[0]).toMatchObject({ id: 'tr-0', error });
    expect(await receiver.receive(transferSucceeded({ id: 'tr-0' }))).toMatchObject({ outcome: 'unconfirmed', error });
    const inspection = await inspectTransfer({ receiver, id: 'tr-0' });
    expect(inspection).toMatchObject({ verdict: 'undecided', service: { state: 'unread', error } });
  },
);

test.each([
  ['throws', bug],
  ['rejects', () => Promise.reject(new Error('late'))],
])('a schema that %s is not taken for an outage', async (_, validate) => {
  const payload = { '~standard': { validate } } as unknown as typeof transferCallbackSchema;
  const { client } = await startQueries((id) => [200, { data: transferSucceeded({ id }).data }], { payload });
  const receiver = transferCallbackReceiver({ ...handlers, store: memoryStore(), service: client });
  const report = await reconcileTransfers({ receiver, pending: transfers(12), concurrency: 1 });
  expect(report).toMatchObject({ failed: 12, stopped: undefined, problems: { 0: { error: { code: 'NOT_HANDLED' } } } });
});
