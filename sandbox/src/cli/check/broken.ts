import { setTimeout as pause } from 'node:timers/promises';
import { isAcknowledgement } from '../../attempt/attempt.js';
import type { Books } from './books.js';
import type { Transfer } from './commands.js';
import type { Sent } from './played.js';
import type { Step } from './rows.js';
import type { Stage } from './stage.js';

const afterResponseMs = 1_500;

/** Sends a callback while the app cannot book, and retries when it can. */
export async function sendBroken(
  stage: Stage,
  transfer: Transfer,
  step: Step,
  books: Books | undefined,
): Promise<Sent> {
  const { breakage } = stage.options;
  const isBroken = (await breakage?.break(transfer)) === true;
  const first = isBroken ? [await stage.send(transfer, 'broken')] : [];
  const isTaken = first.some(isAcknowledgement);
  // The work that an app does after its response must fail as well.
  if (isTaken) await pause(afterResponseMs);
  const isBooked = isTaken && (await books?.isBookedWhileBroken(transfer)) === true;
  const isMended = await breakage?.mend(transfer);
  if (!isBroken || isMended !== true) {
    const unseen = `The command of ${isBroken ? '--mend' : '--break'} did not end with 0.`;
    return { step, responses: [], findings: [['unseen', unseen]] };
  }
  if (isBooked) return { step, responses: first, findings: [['unseen', notBroken]] };
  const responses = await stage.announce(transfer, undefined, first);
  return { step, responses, findings: isTaken ? [['note', queued]] : [] };
}

const notBroken = 'It was booked while --break was in force: --break did not break it.';
const queued =
  'It was acknowledged while --break was in force: right with a durable queue, or --break did not break it.';
