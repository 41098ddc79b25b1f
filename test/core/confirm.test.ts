import { beforeEach, expect, test, vi } from 'vitest';
import type { TransferCallback } from 'transfer-callbacks';
import { transferFailed, transferSucceeded } from 'transfer-callbacks/testing';
import { fakeClock, later, receiverOf } from './support.js';
import { containing } from '../support/helpers/containing.js';

beforeEach(fakeClock);

test('the handler gets the callback that confirm has read, and confirm the source of the delivery', async () => {
  const onSuccess = vi.fn();
  const confirm = vi.fn((callback: TransferCallback) =>
    Promise.resolve({ ...callback, data: { ...callback.data, provider: 'as read' } } as TransferCallback),
  );
  const receiver = receiverOf({ confirm, onSuccess });
  const { outcome, delivery } = await receiver.receive(transferSucceeded(), { source: 'queue' });
  expect(outcome).toBe('processed');
  expect(onSuccess.mock.calls[0]).toMatchObject([{ data: { provider: 'as read' } }, { delivery }]);
  expect(confirm.mock.calls[0]).toMatchObject([{}, { source: 'queue', delivery, signal: { aborted: false } }]);
});

const down = new Error('service down');

const expected = (what: string): object => ({
  code: 'UNCONFIRMED',
  message: containing(`Expected \`confirm\` to ${what}.`),
});
const differs = (facts: string) => expected(`confirm the ${facts} of the callback`);
const returned = (got: string) => expected(`return \`true\`, or what the service sends for the transfer, got ${got}`);

test.each<[string, (callback: TransferCallback) => unknown, object?]>([
  ['another transfer', ({ data }) => transferSucceeded({ ...data, id: 'other' } as object), differs('id')],
  ['another amount', ({ data }) => transferSucceeded({ ...data, amount: 1 } as object), differs('amount')],
  ['another currency', ({ data }) => transferSucceeded({ ...data, currency: 'XOF' } as object), differs('currency')],
  [
    'another externalId',
    ({ data }) => transferSucceeded({ ...data, externalId: 'b' } as object),
    differs('externalId'),
  ],
  ['a failure', ({ data: { id, externalId } }) => transferFailed({ id, externalId }), differs('event, status')],
  ['another event', (callback) => ({ ...callback, event: 'transfer.failed' })],
  [
    'a reversal, which this service never sends',
    ({ data }) => ({ event: 'transfer.reversed', data: { ...data, status: 'REVERSED' } }),
  ],
  ['nothing', () => undefined, returned('undefined')],
  ['null', () => null, returned('null')],
  ['a verdict that is no', () => false, returned('false')],
  ['a text', () => 'confirmed', returned('"confirmed"')],
  ['its argument', (callback) => callback, returned('the callback that it was given')],
  ['a copy of its argument', (callback) => ({ ...callback }), returned('the callback that it was given')],
  ['no data', () => ({ event: 'transfer.success' })],
  [
    'what is not as documented',
    ({ event, data }) => ({ event, data: { ...data, provider: undefined, walletNumber: 5 } }),
    { message: expect.stringMatching(/read is no callback: data\.provider: .*; data\.walletNumber: /) as string },
  ],
  ['a rejection', () => Promise.reject(down), down],
])(
  'a confirm that ends with %s leaves the callback unconfirmed, unhandled and free',
  async (_name, response, error) => {
    const onSuccess = vi.fn();
    const confirm = vi.fn<(callback: TransferCallback) => unknown>(() => true).mockImplementationOnce(response);
    const receiver = receiverOf({ confirm, onSuccess });
    const callback = transferSucceeded();
    expect(await receiver.receive(callback)).toMatchObject({
      outcome: 'unconfirmed',
      error: error ?? { code: 'UNCONFIRMED' },
    });
    expect(onSuccess).not.toHaveBeenCalled();
    expect(await receiver.receive(callback)).toMatchObject({ outcome: 'processed' });
  },
);

test('confirm runs before the claim, so that repeated forgeries do not block the real callback', async () => {
  const real = transferSucceeded();
  const forged = transferSucceeded({ ...real.data, amount: 1 });
  const onSuccess = vi.fn();
  const receiver = receiverOf({
    onSuccess,
    async confirm() {
      await new Promise((resolve) => setTimeout(resolve, 400));
      return real;
    },
  });
  let forging = true;
  const forge = async (): Promise<void> => {
    while (forging) expect(await receiver.receive(forged)).toMatchObject({ outcome: 'unconfirmed' });
  };
  const forgers = Promise.all(Array.from({ length: 20 }, forge));
  await vi.advanceTimersByTimeAsync(100);
  const delivery = receiver.receive(real);
  await vi.advanceTimersByTimeAsync(400);
  expect(await delivery).toMatchObject({ outcome: 'processed', durationMs: 400 });
  forging = false;
  await vi.advanceTimersByTimeAsync(400);
  await forgers;
  expect(onSuccess).toHaveBeenCalledTimes(1);
});

const [success, failure] = [transferSucceeded(), transferFailed()];
const reversed = { event: 'transfer.reversed' };

test.each<[what: string, callback: TransferCallback, changes: object, ofData: object]>([
  ['status of a failure', failure, {}, { status: 'SUCCESS' }],
  ['event of a failure', failure, { event: 'transfer.success' }, {}],
  ['status of a success', success, {}, { status: 'REVERSED' }],
  ['event of a success', success, reversed, {}],
  ['event and status, to a reversal that nothing handles', success, reversed, { status: 'REVERSED' }],
])('a confirm does not confirm a callback that it changes in place: %s', async (_what, callback, changes, ofData) => {
  const handler = vi.fn();
  const receiver = receiverOf({
    onSuccess: handler,
    onFailed: handler,
    confirm(given) {
      Object.assign(given, changes);
      Object.assign(given.data, ofData);
      return true;
    },
  });
  expect(await receiver.receive(structuredClone(callback))).toMatchObject({
    outcome: 'unconfirmed',
    error: { code: 'UNCONFIRMED' },
  });
  expect(handler).not.toHaveBeenCalled();
});

test('the signal of confirm aborts after confirmTimeoutMs, and when the receiver closes; no handler runs after it', async () => {
  const reasons: unknown[] = [];
  const onSuccess = vi.fn();
  const response = later<TransferCallback>();
  const receiver = receiverOf({
    confirmTimeoutMs: 700,
    confirm: (_callback, { signal }) => {
      signal.addEventListener('abort', () => reasons.push(signal.reason));
      return response.promise;
    },
    onSuccess,
  });
  const late = receiver.receive(transferSucceeded());
  await vi.advanceTimersByTimeAsync(700);
  expect(await late).toMatchObject({
    outcome: 'unconfirmed',
    durationMs: 700,
    error: { code: 'CONFIRM_TIMEOUT', message: containing('`confirm` did not finish within 700 ms.') },
  });
  const callback = transferSucceeded();
  const closing = receiver.receive(callback);
  const closed = receiver.close({ timeoutMs: 100 });
  await vi.advanceTimersByTimeAsync(100);
  expect(await closing).toMatchObject({ outcome: 'closing' });
  expect(await closed).toEqual({ unfinished: 0, ids: [] });
  expect(reasons).toMatchObject([{ code: 'CONFIRM_TIMEOUT' }, { code: 'CLOSING' }]);
  response.resolve(callback);
  await vi.advanceTimersByTimeAsync(0);
  expect(onSuccess).not.toHaveBeenCalled();
});
