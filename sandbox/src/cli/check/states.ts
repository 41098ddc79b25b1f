import { isAcknowledgement } from '../../attempt/attempt.js';
import type { Bookings } from './books.js';
import type { Stage } from './stage.js';
import { judgeRefused, toTimes, type Findings, type Trial, type Tried } from './trial.js';

const group = 'documented';

/** The rows of an event that is no outcome of a transfer. */
export const stateTrials: readonly Trial[] = [
  { name: 'unknown-state', group, right: 'refuses it, books nothing', play: sendUnknown },
  { name: 'foreign-event', group, right: 'acknowledges it, books nothing', play: sendForeign },
];

async function sendUnknown(stage: Stage): Promise<Tried | undefined> {
  const { defined } = stage.service;
  if (defined === undefined) return undefined;
  const transfer = defined.makeUnknown();
  await stage.prepare(transfer);
  const response = await stage.send(transfer);
  const wrong = isAcknowledgement(response)
    ? 'A state that the definition does not have was acknowledged. If it is an outcome, it is lost.'
    : undefined;
  return {
    responses: [response],
    toCount: [{ transfer, isExpected: false }],
    judge: ([bookings]) => judgeUnbooked(bookings, 'A state that the definition does not have was booked.', { wrong }),
  };
}

async function sendForeign(stage: Stage): Promise<Tried | undefined> {
  const { defined } = stage.service;
  if (defined === undefined) return undefined;
  const transfer = defined.makeForeign();
  const responses = await stage.announce(transfer);
  const because = 'An event that is none of your transfers was refused.';
  const wire = responses.some(isAcknowledgement)
    ? {}
    : judgeRefused(stage, responses, because, 'The service repeats it, and may turn your endpoint off.');
  return {
    responses,
    toCount: [{ transfer, isExpected: false }],
    judge: ([bookings]) => judgeUnbooked(bookings, 'An event that is none of your transfers was booked.', wire),
  };
}

function judgeUnbooked(bookings: Bookings | undefined, booked: string, wire: Findings): Findings {
  const times = toTimes(bookings);
  return { ...wire, wrong: (times ?? 0) > 0 ? booked : wire.wrong, times };
}
