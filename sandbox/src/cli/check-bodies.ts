import { transferSucceeded, type transferFailed } from '../../../src/testing/fixtures.js';
import { invalidCallbacks } from '../../../src/testing/invalid.js';

interface Body {
  readonly title: string;
  readonly externalId: string;
  readonly body: string;
}

/** What the service's document does not allow, and no app can book rightly. */
const unbookable = [
  'an empty body',
  'a body that is not JSON',
  'null',
  'no event',
  'no data',
  'the event of a failure with the data of a success',
  'the event of a success with the data of a failure',
  'data.id is missing',
  'data.status is missing',
];

/** Returns a body with an id of its own: an app may know that of another one. */
function toBody({ title, callback }: (typeof invalidCallbacks)[number]): Body {
  const text = typeof callback === 'string' ? callback : JSON.stringify(callback);
  const { id, externalId } = transferSucceeded().data;
  const body = known.reduce((changed, { data }) => {
    return changed.replaceAll(data.id, id).replaceAll(data.externalId, externalId);
  }, text);
  return { title, externalId, body };
}

/** The callbacks from which the invalid ones are made. */
const known = invalidCallbacks.flatMap(({ title, callback }) => {
  const isWhole = title.startsWith('the event of');
  return isWhole ? [callback as ReturnType<typeof transferSucceeded | typeof transferFailed>] : [];
});

export const unbookableBodies = (): Body[] =>
  invalidCallbacks.filter(({ title }) => unbookable.includes(title)).map(toBody);

/** What has a field that is not as documented, which an app need not read. */
export const undocumentedBodies = (): Body[] =>
  invalidCallbacks.filter(({ title }) => !unbookable.includes(title)).map(toBody);
