import { isAcknowledgement } from '../../attempt/attempt.js';
import { firstRetryMs } from '../../../../src/core/service.js';
import type { Bookings } from './books.js';
import type { FinalStatus } from './service.js';
import {
  judgeAcknowledged,
  judgeOnce,
  judgeRefused,
  judgeWorst,
  type FindGap,
  type Trial,
  type Tried,
} from './trial.js';

const documented = 'documented';
const attemptsTogether = 10;

/** One burst missed a race of 3 ms twice in 14 trials. */
const bursts = 3;

/** The rows that are played with each final status: one callback, its copies, and a response that is lost. */
export const outcomeTrials: readonly Trial[] = [
  announceOnce('success', 'SUCCESS'),
  announceOnce('failed', 'FAILED'),
  sendTwice('duplicate', 'SUCCESS'),
  sendTogether('burst', 'SUCCESS'),
  loseResponse('response-lost', 'SUCCESS'),
  sendTwice('failed-duplicate', 'FAILED'),
  sendTogether('failed-burst', 'FAILED'),
  loseResponse('failed-lost', 'FAILED'),
];

function announceOnce(name: string, status: FinalStatus): Trial {
  return {
    ...{ name, group: documented, right: 'acknowledges it' },
    async play(stage) {
      const transfer = await stage.create(name, status);
      const responses = await stage.announce(transfer);
      return judgeOnce(transfer, responses, judgeAcknowledged(stage, responses), findConfusion);
    },
  };
}

function sendTwice(name: string, status: FinalStatus): Trial {
  return {
    ...{ name, group: documented, right: 'acknowledges the copy, too' },
    async play(stage) {
      const transfer = await stage.create(name, status);
      const responses = await stage.announce(transfer);
      if (!responses.some(isAcknowledgement)) {
        return judgeOnce(transfer, responses, judgeAcknowledged(stage, responses), findBlindness);
      }
      await stage.wait(firstRetryMs);
      const copy = await stage.send(transfer);
      const all = [...responses, copy];
      const because = 'The callback was acknowledged, but refused when it came again.';
      const wire = isAcknowledgement(copy)
        ? {}
        : judgeRefused(stage, all, because, 'The service repeats what you have handled.');
      return judgeOnce(transfer, all, wire, findBlindness);
    },
  };
}

function sendTogether(name: string, status: FinalStatus): Trial {
  return {
    ...{ name, group: documented, right: 'acknowledges one of ten' },
    async play(stage) {
      const all: Tried[] = [];
      while (all.length < bursts && stage.silence === undefined) {
        const transfer = await stage.create(name, status);
        const responses = await stage.sendTogether(transfer, attemptsTogether);
        all.push(judgeOnce(transfer, responses, judgeAcknowledged(stage, responses), findBlindness));
      }
      return judgeWorst(all);
    },
  };
}

function loseResponse(name: string, status: FinalStatus): Trial {
  return {
    ...{ name, group: documented, right: 'acknowledges the next attempt' },
    async play(stage) {
      const transfer = await stage.create(name, status);
      const responses = await stage.announce(transfer, { dropResponse: true });
      return judgeOnce(transfer, responses, judgeAcknowledged(stage, responses), findBlindness);
    },
  };
}

/** Without $STATUS, a count of 1 is right for a refund, and wrong for a payment. */
const findConfusion: FindGap = (bookings) =>
  isWithoutStatus(bookings) && bookings.times > 0
    ? 'It was counted as a success is. If --count counts payments alone, a failure was booked as paid: use $STATUS.'
    : undefined;

/** Without $STATUS, a count of 0 shows that a failure is not booked as paid, and nothing of refunds. */
const findBlindness: FindGap = (bookings) =>
  isWithoutStatus(bookings) && bookings.times === 0
    ? '--count counts no failure without $STATUS: a refund for each copy would not be seen.'
    : undefined;

function isWithoutStatus(bookings: Bookings): bookings is Extract<Bookings, { kind: 'without status' }> {
  return bookings.kind === 'without status';
}
