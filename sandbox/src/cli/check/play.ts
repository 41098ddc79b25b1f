import { isAcknowledgement, type AttemptResponse } from '../../attempt/attempt.js';
import { firstRetryMs } from '../../../../src/core/service.js';
import type { Books } from './books.js';
import type { Transfer } from './commands.js';
import type { Findings } from './findings.js';
import { outcomeOf, type Play, type Row, type Step } from './rows.js';
import type { Stage } from './stage.js';

/** A step, and the responses to it. */
export interface Sent {
  readonly step: Step;
  readonly responses: readonly AttemptResponse[];
  /** Whether a copy was still refused when there was no reason left. */
  readonly isFinal?: boolean;
}

/** What was sent of a transfer, and why the rest was not. */
export interface PlayedPlay {
  readonly play: Play;
  readonly transfer: Transfer;
  readonly sent: readonly Sent[];
  readonly unseen?: string | undefined;
}

/** A row that was played, and is not judged yet. */
export interface Played {
  readonly row: Row;
  readonly plays: readonly PlayedPlay[];
  /** What is known beside the responses and the bookings, and whether the app has ended. */
  readonly beside: Findings & { readonly isOver?: true };
}

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
    if (stage.silence !== undefined) break;
    played.push(await playOne(stage, row, play, books));
  }
  const unseen = played.length < plays.length ? stage.silence : undefined;
  return { row, plays: played, beside: { unseen } };
}

async function playOne(stage: Stage, { name }: Row, play: Play, books: Books | undefined): Promise<PlayedPlay> {
  const [first] = play.send;
  const event = first === undefined || first.event === 'made' ? 'success' : first.event;
  const isForged = stage.forgeries.some((each) => each === first?.fault) && play.send.length === 1;
  const isKnown = !isForged && event !== 'unknown' && event !== 'foreign';
  const transfer = play.transfer ?? (await stage.service.create(name, event, isKnown));
  await stage.prepare(transfer);
  // A copy has the bytes of the first one: a service names its event once.
  const bodies = new Map<Step['event'], string>([[first?.event ?? 'made', transfer.body]]);
  const sent: Sent[] = [];
  for (const [index, step] of play.send.entries()) {
    const body =
      bodies.get(step.event) ?? (step.event === 'made' ? transfer.body : stage.service.toBody(step.event, transfer));
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
  switch (step.as) {
    case 'once':
      return { step, responses: [await stage.send(transfer, step.fault)] };
    case 'burst':
      return { step, responses: await stage.sendTogether(transfer, attemptsTogether) };
    case 'copy': {
      await stage.wait(firstRetryMs);
      const copy = await stage.send(transfer);
      if (!('status' in copy) || ![409, 423].includes(copy.status) || step.refused !== undefined) {
        return { step, responses: [copy] };
      }
      // A handler may still run. When it has booked, nothing but the end of a lease is to come.
      const isBooked = await books?.awaitBooking({ ...transfer, status: outcomeOf[step.event] ?? 'SUCCESS' });
      return { step, responses: [copy, await stage.insist(transfer)], isFinal: isBooked !== false };
    }
    case undefined:
    default:
      return { step, responses: await stage.announce(transfer, step.fault) };
  }
}
