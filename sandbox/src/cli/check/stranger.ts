import { isAcknowledgement, type AttemptResponse } from '../../attempt/attempt.js';
import type { Bookings } from './books.js';
import type { Stage } from './stage.js';
import { judgeWire, toTimes, type Trial, type Tried } from './trial.js';

/** The row of a callback that comes without a secret. */
export const strangerTrial: Trial = {
  ...{ name: 'stranger', group: 'documented', right: 'does not believe it' },
  play: sendAsStranger,
};

async function sendAsStranger(stage: Stage): Promise<Tried | undefined> {
  const forged = stage.service.forge();
  const strangerUrl = stage.findStrangerUrl(forged);
  if (strangerUrl === undefined) {
    const unseen = stage.service.strangerGap;
    return unseen === undefined ? undefined : judgeWire([], { unseen });
  }
  await stage.prepare(forged);
  const response = await stage.sendAsStranger(strangerUrl, forged);
  if (!('status' in response)) return judgeWire([response], { unseen: 'The stranger got no response.' });
  return {
    responses: [response],
    toCount: [{ transfer: forged, isExpected: false }],
    judge: ([bookings]) => ({ wrong: findFault(response, bookings), times: toTimes(bookings) }),
  };
}

function findFault(response: AttemptResponse, bookings: Bookings | undefined): string | undefined {
  // An app may respond 2xx to a stranger, and do nothing.
  if (bookings?.kind === 'counted' && bookings.times === 0) return undefined;
  if (isAcknowledgement(response)) {
    return 'A callback without the secret was acknowledged. Anyone who knows the address can have a payout count as paid.';
  }
  return bookings?.kind === 'counted' ? 'What a stranger sent was refused, and booked.' : undefined;
}
