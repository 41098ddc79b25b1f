import { transferFailed, transferSucceeded } from './fixtures.js';

const success = transferSucceeded();
const failure = transferFailed();

function withData(changes: object): object {
  return { ...success, data: { ...success.data, ...changes } };
}

const wrongTypes = Object.keys(success.data).flatMap((field) => [
  { title: `data.${field} is missing`, callback: withData({ [field]: undefined }) },
  { title: `data.${field} is of another type`, callback: withData({ [field]: [] }) },
]);

/**
 * Bodies that are not as documented (service §2.1, §6), one fault each. An app must respond to each with a 4xx. `title`
 * is the fault. `callback` is what to send: a string unchanged, any other value as JSON.
 *
 * @example
 * for (const { title, callback } of invalidCallbacks) {
 *   const { acknowledged } = await deliver(app, callback, { retry: false });
 *   if (acknowledged) throw new Error(`It was acknowledged although ${title}.`);
 * }
 */
export const invalidCallbacks: readonly { readonly title: string; readonly callback: unknown }[] = [
  { title: 'an empty body', callback: '' },
  { title: 'a body that is not JSON', callback: 'event=transfer.success' },
  { title: 'a body that is cut short', callback: JSON.stringify(success).slice(0, -1) },
  { title: 'null', callback: 'null' },
  { title: 'a list of callbacks', callback: [success] },
  { title: 'no event', callback: { data: success.data } },
  { title: 'an event that is not documented', callback: { ...success, event: 'transfer.reversed' } },
  { title: 'no data', callback: { event: success.event } },
  { title: 'the event of a failure with the data of a success', callback: { ...success, event: failure.event } },
  { title: 'the event of a success with the data of a failure', callback: { ...failure, event: success.event } },
  ...wrongTypes,
  { title: 'data.id is empty', callback: withData({ id: '' }) },
  { title: 'data.id is longer than 255 characters', callback: withData({ id: 'x'.repeat(256) }) },
  { title: 'data.id has a control character', callback: withData({ id: 'tr\n1' }) },
  { title: 'data.status is not final', callback: withData({ status: 'PENDING' }) },
  { title: 'data.amount is a string', callback: withData({ amount: '15000' }) },
  { title: 'data.paymentMethod is not documented', callback: withData({ paymentMethod: 'cash' }) },
  { title: 'a bank payout without an account', callback: withData({ paymentMethod: 'bank', walletNumber: null }) },
  { title: 'a mobile money payout with an account', callback: withData({ bankAccount: {} }) },
  { title: 'a success with a reason for failure', callback: withData({ failureReason: 'Wallet closed' }) },
  { title: 'data.timestamp is not a time', callback: withData({ timestamp: 'yesterday' }) },
];
