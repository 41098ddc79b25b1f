import { setTimeout as pause } from 'node:timers/promises';
import { isAcknowledgement, type AttemptResponse } from '../../attempt/attempt.js';
import type { Books } from './books.js';
import type { Breakage, Transfer } from './commands.js';
import type { Findings } from './findings.js';
import { tryRealTime } from './judge.js';
import type { Played } from './play.js';
import { breaking, type Step } from './rows.js';
import type { Stage } from './stage.js';

const afterResponseMs = 1_500;

/** Sends a callback while the app cannot book, and retries when it can. */
export async function failOnce(
  stage: Stage,
  breakage: Breakage,
  books: Books | undefined,
): Promise<{ readonly played: Played; readonly isMended: boolean }> {
  const transfer = await stage.service.create(breaking.name, 'success', true);
  await stage.prepare(transfer);
  const toPlayed = (responses: readonly AttemptResponse[], beside: Findings): Played => {
    // What is not acknowledged is explained beside it.
    const step: Step = { event: 'success', refused: 'right' };
    const play = { send: [step], booked: { SUCCESS: 1 } } as const;
    return {
      row: breaking,
      plays: responses.length > 0 ? [{ play, transfer, sent: [{ step, responses }] }] : [],
      beside,
    };
  };
  const isBroken = await breakage.break(transfer);
  const first = isBroken ? [await stage.send(transfer)] : [];
  const isBooked = first.some(isAcknowledgement) && (await isBookedSoon(transfer, books));
  const isMended = await breakage.mend(transfer);
  if (!isBroken || !isMended) {
    const unseen = `The command of ${isBroken ? '--mend' : '--break'} did not end with 0.`;
    return { played: toPlayed([], { unseen }), isMended };
  }
  const unseen = 'It was booked while --break was in force: --break did not break it.';
  if (isBooked) return { played: toPlayed(first, { unseen }), isMended };
  const responses = await stage.announce(transfer, undefined, first);
  return { played: toPlayed(responses, explain(stage, responses, books !== undefined)), isMended };
}

/** Resolves with whether a callback was booked that was acknowledged while the app was broken. */
async function isBookedSoon(transfer: Transfer, books: Books | undefined): Promise<boolean> {
  // The work that an app does after its response must fail as well.
  await pause(afterResponseMs);
  return (await books?.isBookedWhileBroken(transfer)) ?? false;
}

function explain(stage: Stage, responses: readonly AttemptResponse[], isCounted: boolean): Findings {
  const unless = (unseen: string): Findings => (isCounted ? {} : { unseen });
  if (responses.slice(0, 1).some(isAcknowledgement)) {
    const note =
      'It was acknowledged while --break was in force: right with a durable queue, or --break did not break it.';
    return {
      note,
      ...unless('It was acknowledged while your app was broken: right if it is booked later. Give --count.'),
    };
  }
  if (responses.some(isAcknowledgement)) {
    return unless('The retry was acknowledged: right if it is booked, and not only remembered. Give --count.');
  }
  const because = `None of ${responses.length} attempts was acknowledged.`;
  if (stage.options.isRealTime && stage.silence === undefined) return { wrong: because };
  return { unseen: stage.silence ?? `${because} ${tryRealTime}` };
}
