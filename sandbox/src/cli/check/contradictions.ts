import { isAcknowledgement } from '../../attempt/attempt.js';
import type { Bookings } from './books.js';
import type { Stage } from './stage.js';
import { judgeOnce, toTimes, type Trial, type Tried } from './trial.js';

const group = 'stricter';

/** The rows of other facts under an id that was handled. The service's document excludes them. */
export const contradictionTrials: readonly Trial[] = [
  { name: 'flip', group, right: 'refuses SUCCESS after FAILED', play: contradict },
  { name: 'other-amount', group, right: 'refuses it for a known id', play: changeAmount },
];

const notAcknowledged = 'The first callback was not acknowledged, so that nothing could contradict it.';

async function contradict(stage: Stage): Promise<Tried> {
  const transfer = await stage.create('flip', 'FAILED');
  const attempts = await stage.announce(transfer);
  if (!attempts.some(isAcknowledgement)) return judgeOnce(transfer, attempts, { unseen: notAcknowledged });
  const second = await stage.send({ ...transfer, body: stage.service.contradict(transfer) });
  const responses = [...attempts, second];
  const unseen = stage.silence;
  if (!isAcknowledgement(second)) return judgeOnce(transfer, responses, { unseen });
  return {
    responses,
    toCount: [{ transfer, isExpected: true }],
    judge: ([bookings]) => {
      const wrong = `SUCCESS was acknowledged after FAILED for the same id. ${findCost(bookings)}`;
      return { wrong, times: toTimes(bookings) };
    },
  };
}

/** What both together cost is known from the bookings alone. */
function findCost(bookings: Bookings | undefined): string {
  const cost = 'You have refunded what was paid, and nobody learns of it.';
  if (bookings === undefined || bookings.kind === 'uncounted') return `The payout may count twice. ${cost}`;
  if (bookings.kind === 'counted' && bookings.asPaid > 0) {
    return bookings.times > 0 ? 'The payout counts as refunded and as paid.' : 'The payout counts as paid now.';
  }
  return bookings.times > 1 ? `${cost} It was booked ${bookings.times} times.` : cost;
}

async function changeAmount(stage: Stage): Promise<Tried> {
  const transfer = await stage.create('other-amount', 'SUCCESS');
  const attempts = await stage.announce(transfer);
  if (!attempts.some(isAcknowledgement)) return judgeOnce(transfer, attempts, { unseen: notAcknowledged });
  const second = await stage.send({ ...transfer, body: stage.service.changeAmount(transfer) });
  const wrong = 'Another amount under the same id was acknowledged: your books and the service disagree.';
  const isAccepted = isAcknowledgement(second);
  return judgeOnce(transfer, [...attempts, second], { wrong: isAccepted ? wrong : undefined, unseen: stage.silence });
}
