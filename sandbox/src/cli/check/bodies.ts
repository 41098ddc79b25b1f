import { transferSucceeded, type transferFailed } from '../../../../src/testing/fixtures.js';
import { invalidCallbacks } from '../../../../src/testing/invalid.js';
import type { NamedTransfer } from './commands.js';

/** A body that is not as documented. */
export interface InvalidBody {
  readonly title: string;
  readonly body: string;
  /** The transfer that it would be about without its fault. The service knows no such transfer. */
  readonly transfer: NamedTransfer;
  /** Whether it is right to book it once, because an app can find its payout and the outcome without what is wrong. */
  readonly isBookable: boolean;
}

/** By title, whether it is right to book it once. What an app takes most easily is first: the row may be cut short. */
const unbookable = new Map([
  // Whichever of both an app believes, it may pay or refund wrongly.
  ['the event of a failure with the data of a success', false],
  ['the event of a success with the data of a failure', false],
  ['data.id is missing', true],
  ['data.status is missing', true],
  ['no event', true],
  ['an empty body', false],
  ['a body that is not JSON', false],
  ['null', false],
  ['no data', false],
]);

/** Returns a body with an id of its own: an app may know that of another one. */
function toBody({ title, callback }: (typeof invalidCallbacks)[number]): InvalidBody {
  const text = typeof callback === 'string' ? callback : JSON.stringify(callback);
  const { id, externalId, amount, currency } = transferSucceeded().data;
  const body = known.reduce((changed, { data }) => {
    return changed.replaceAll(data.id, id).replaceAll(data.externalId, externalId);
  }, text);
  const transfer = { id, externalId, status: 'SUCCESS', amount, currency } as const;
  return { title, body, transfer, isBookable: unbookable.get(title) ?? false };
}

/** The callbacks from which the invalid ones are made. */
const known = invalidCallbacks.flatMap(({ title, callback }) => {
  const isWhole = title.startsWith('the event of');
  return isWhole ? [callback as ReturnType<typeof transferSucceeded | typeof transferFailed>] : [];
});

/** What the service's document does not allow, and most apps cannot book rightly. */
export const unbookableBodies = (): InvalidBody[] =>
  [...unbookable.keys()].flatMap((name) => invalidCallbacks.filter(({ title }) => title === name).map(toBody));

/** What has a field that is not as documented, which an app need not read. */
export const undocumentedBodies = (): InvalidBody[] =>
  invalidCallbacks.filter(({ title }) => !unbookable.has(title)).map(toBody);
