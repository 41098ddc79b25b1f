import { isAcknowledgement } from '../../attempt/attempt.js';
import type { Bookings } from './books.js';
import type { Announced, DefinedRows } from './service.js';
import type { Stage } from './stage.js';
import { judgeAcknowledged, judgeOnce, toTimes, type Findings, type Trial, type Tried } from './trial.js';

const group = 'documented';
const uncounted: Bookings = { kind: 'uncounted' };

/** The rows of a transfer that is taken back. */
export const reversalTrials: readonly Trial[] = [
  { name: 'reversed', group, right: 'gives back once, for two copies', play: reverseSuccess },
  { name: 'failed-reversed', group, right: 'gives back once, for both', play: reverseFailure },
];

const notAcknowledged = 'The first callback was not acknowledged, so that nothing could be taken back.';
const needsStatus = '--count cannot tell what is given back without $STATUS.';

async function reverseSuccess(stage: Stage): Promise<Tried | undefined> {
  const { defined } = stage.service;
  if (defined === undefined) return undefined;
  const paid = await stage.create('reversed', 'SUCCESS');
  const first = await stage.announce(paid);
  if (!first.some(isAcknowledgement)) return judgeOnce(paid, first, { unseen: notAcknowledged });
  const { reversal, responses } = await reverseTwice(stage, defined, paid);
  const wire = judgeAcknowledged(stage, responses);
  return {
    responses: [...first, ...responses],
    toCount: [
      { transfer: paid, isExpected: true },
      { transfer: reversal, isExpected: responses.some(isAcknowledgement) },
    ],
    judge([, bookings = uncounted]) {
      const times = toTimes(bookings);
      if (bookings.kind === 'without status') return { ...wire, unseen: needsStatus };
      return { ...wire, wrong: wire.wrong ?? findFault(times, responses.some(isAcknowledgement)), times };
    },
  };
}

async function reverseFailure(stage: Stage): Promise<Tried | undefined> {
  const { defined } = stage.service;
  if (defined === undefined) return undefined;
  const refunded = await stage.create('failed-reversed', 'FAILED');
  const first = await stage.announce(refunded);
  if (!first.some(isAcknowledgement)) return judgeOnce(refunded, first, { unseen: notAcknowledged });
  const { reversal, responses } = await reverseTwice(stage, defined, refunded);
  // Whether --count has one word for both is seen where only a failure came.
  const control = await stage.create('failed-reversed', 'FAILED');
  await stage.announce(control);
  const wire = judgeAcknowledged(stage, responses);
  return {
    responses: [...first, ...responses],
    toCount: [
      { transfer: refunded, isExpected: true },
      { transfer: reversal, isExpected: false },
      { transfer: { ...control, status: 'REVERSED' }, isExpected: false },
    ],
    judge: (bookings) => judgeBoth(wire, bookings),
  };
}

/** Sends a reversal, and its copy. */
async function reverseTwice(stage: Stage, defined: DefinedRows, transfer: Announced) {
  const reversal: Announced = { ...transfer, status: 'REVERSED', body: defined.reverse(transfer) };
  const responses = await stage.announce(reversal);
  return { reversal, responses: [...responses, await stage.send(reversal)] };
}

function judgeBoth(wire: Findings, bookings: readonly Bookings[]): Findings {
  if (bookings.some(({ kind }) => kind === 'without status')) return { ...wire, unseen: needsStatus };
  const [refunds, reversals, ofControl] = bookings.map(toTimes);
  if (refunds === undefined || reversals === undefined) return wire;
  const times = ofControl === 0 ? refunds + reversals : Math.max(refunds, reversals);
  return { ...wire, wrong: wire.wrong ?? findFault(times, true), times };
}

function findFault(times: number | undefined, isAcknowledged: boolean): string | undefined {
  if (times === undefined || times === 1) return undefined;
  if (times > 1) return `The money of one payout was given back ${times} times.`;
  return isAcknowledged ? 'It was acknowledged and never booked: the money stays paid in your books.' : undefined;
}
