import { setTimeout as pause } from 'node:timers/promises';
import { isAcknowledgement, type AttemptResponse } from '../../attempt/attempt.js';
import type { Books } from './books.js';
import type { Breakage } from './commands.js';
import type { Announced } from './service.js';
import type { Stage } from './stage.js';
import { judgeOnce, judgeWire, staysOpen, tryRealTime, type Trial, type Tried } from './trial.js';

/** The row that needs --break and --mend. */
export const breaking: Omit<Trial, 'play'> = {
  name: 'handler-fails',
  group: 'documented',
  right: 'refuses it, takes the retry',
};

const afterResponseMs = 1_500;

/** Sends a callback while the app cannot book, and retries when it can. */
export async function failOnce(
  stage: Stage,
  breakage: Breakage,
  books: Books | undefined,
): Promise<{ readonly tried: Tried; readonly isMended: boolean }> {
  const transfer = await stage.create('handler-fails', 'SUCCESS');
  const isBroken = await breakage.break(transfer);
  const first = isBroken ? [await stage.send(transfer)] : [];
  const isBooked = first.some(isAcknowledgement) && (await isBookedSoon(transfer, books));
  const isMended = await breakage.mend(transfer);
  if (!isBroken || !isMended) {
    const unseen = `The command of ${isBroken ? '--mend' : '--break'} did not end with 0.`;
    return { tried: judgeWire([], { unseen }), isMended };
  }
  if (isBooked) {
    const unseen = 'It was booked while --break was in force: --break did not break it.';
    return { tried: judgeOnce(transfer, first, { unseen }), isMended };
  }
  const responses = await stage.retry(transfer, first);
  return { tried: judgeRetried(stage, transfer, responses), isMended };
}

/** Resolves with whether a callback was booked that was acknowledged while the app was broken. */
async function isBookedSoon(transfer: Announced, books: Books | undefined): Promise<boolean> {
  // What an app does after its response must fail, too.
  await pause(afterResponseMs);
  return (await books?.isBookedWhileBroken(transfer)) ?? false;
}

function judgeRetried(stage: Stage, transfer: Announced, responses: readonly AttemptResponse[]): Tried {
  if (responses.slice(0, 1).some(isAcknowledgement)) {
    const note =
      'It was acknowledged while --break was in force: right with a durable queue, or --break did not break it.';
    return judgeOnce(transfer, responses, { note }, ({ kind }) =>
      kind === 'uncounted'
        ? 'It was acknowledged while your app was broken: right if it is booked later. Give --count.'
        : undefined,
    );
  }
  if (responses.some(isAcknowledgement)) {
    return judgeOnce(transfer, responses, {}, ({ kind }) =>
      kind === 'uncounted'
        ? 'The retry was acknowledged: right if it is booked, and not only remembered. Give --count.'
        : undefined,
    );
  }
  const because = `None of ${responses.length} attempts was acknowledged.`;
  const unseen = stage.silence ?? `${because} ${tryRealTime}`;
  const isSeen = stage.isRealTime && stage.silence === undefined;
  return judgeOnce(transfer, responses, isSeen ? { wrong: `${because} ${staysOpen}` } : { unseen });
}
