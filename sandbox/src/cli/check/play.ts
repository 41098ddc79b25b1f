import { setTimeout as pause } from 'node:timers/promises';
import { isAcknowledgement } from '../../attempt/attempt.js';
import { firstRetryMs } from '../../../../src/core/service.js';
import type { Books } from './books.js';
import type { Transfer } from './commands.js';
import type { Played, PlayedPlay, Sent } from './played.js';
import { outcomeOf, type Play, type Row, type Step } from './rows.js';
import type { Stage } from './stage.js';

const attemptsTogether = 10;
const needsFirst = 'The callback before it was not acknowledged, so that nothing could follow it.';

/** Sends all of a row. */
export async function playRow(
  stage: Stage,
  row: Row,
  plays: readonly Play[],
  books: Books | undefined,
): Promise<Played> {
  stage.beginRow();
  const played: PlayedPlay[] = [];
  for (const play of plays) {
    if (stage.silence !== undefined) return { row, plays: played, findings: [['unseen', stage.silence]] };
    played.push(await playOne(stage, row, play, books));
  }
  return { row, plays: played, findings: [] };
}

async function playOne(stage: Stage, { name }: Row, play: Play, books: Books | undefined): Promise<PlayedPlay> {
  const [first] = play.send;
  const event = first === undefined || first.event === 'made' ? 'success' : first.event;
  const isForged = stage.forgeries.some((each) => each === first?.fault) && play.send.length === 1;
  const isKnown = !isForged && event !== 'unknown' && event !== 'foreign';
  const { service } = stage;
  const transfer = play.transfer ?? (isKnown ? await service.create(name, event) : service.invent(name, event));
  await stage.prepare(transfer);
  // A copy has the bytes of the first one: a service names its event once.
  const bodies = new Map([[first?.event, transfer.body]]);
  const sent: Sent[] = [];
  for (const [index, step] of play.send.entries()) {
    const body =
      bodies.get(step.event) ?? (step.event === 'made' ? transfer.body : service.toBody(step.event, transfer));
    bodies.set(step.event, body);
    const each = await sendStep(stage, { ...transfer, body }, step, books);
    const next = play.send[index + 1];
    const isMissed = next !== undefined && step.as !== 'once' && !each.responses.some(isAcknowledgement);
    // The row is about what would have followed.
    const isBefore = isMissed && next.event !== step.event && step.refused === undefined;
    sent.push(isBefore ? toUnjudged(each) : each);
    if (stage.silence !== undefined) return { play, transfer, sent, unseen: stage.silence };
    if (isMissed) return { play, transfer, sent, unseen: isBefore ? needsFirst : undefined };
  }
  return { play, transfer, sent };
}

/** Returns what was sent as something that may be refused. */
export const toUnjudged = (sent: Sent): Sent => ({ ...sent, step: { ...sent.step, refused: 'right' } });

async function sendStep(stage: Stage, transfer: Transfer, step: Step, books: Books | undefined): Promise<Sent> {
  if (step.fault === 'broken') return sendBroken(stage, transfer, step, books);
  if (step.as === 'once') return { step, responses: [await stage.send(transfer, step.fault)] };
  if (step.as === 'burst') return { step, responses: await stage.sendTogether(transfer, attemptsTogether) };
  if (step.as === 'copy') await stage.wait(firstRetryMs);
  const responses = step.as === 'copy' ? [await stage.send(transfer)] : await stage.announce(transfer, step.fault);
  const last = responses.at(-1);
  const isLocked = last !== undefined && 'status' in last && [409, 423].includes(last.status);
  if (!isLocked || step.refused !== undefined) return { step, responses };
  // A handler may still run. When it has booked, nothing but the end of a lease is to come.
  const isBooked = await books?.awaitBooking({ ...transfer, status: outcomeOf[step.event] ?? 'SUCCESS' });
  const isFinal = isBooked ?? step.as === 'copy';
  return { step, responses: [...responses, await stage.insist(transfer)], isFinal };
}

const afterResponseMs = 1_500;

/** Sends a callback while the app cannot book, and retries when it can. */
async function sendBroken(stage: Stage, transfer: Transfer, step: Step, books: Books | undefined): Promise<Sent> {
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
