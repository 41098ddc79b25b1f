import { isAcknowledgement, type AttemptResponse } from '../../attempt/attempt.js';
import type { InvalidBody } from './bodies.js';
import type { Bookings } from './books.js';
import type { CheckedService } from './service.js';
import type { Stage } from './stage.js';
import { join, type Findings, type Trial } from './trial.js';

const right = 'refuses each body';

/** The rows of bodies that are not as documented. */
export const unbookableTrial: Trial = {
  ...{ name: 'unbookable', group: 'documented', right },
  play: sendBodies((service) => service.unbookable(), judgeUnbookable),
};

export const undocumentedTrial: Trial = {
  ...{ name: 'undocumented', group: 'stricter', right },
  play: sendBodies((service) => service.undocumented(), judgeUndocumented),
};

/** An acknowledged body that may be booked has its bookings. */
type Acknowledged = InvalidBody & { readonly bookings?: Bookings | undefined };
type Judge = (acknowledged: readonly Acknowledged[], all: number) => Findings;

function sendBodies(toBodies: (service: CheckedService) => readonly InvalidBody[], judge: Judge): Trial['play'] {
  return async (stage) => {
    const bodies = toBodies(stage.service);
    const responses: AttemptResponse[] = [];
    const acknowledged: InvalidBody[] = [];
    for (const each of bodies) {
      if (stage.silence !== undefined) break;
      await stage.prepare(each.transfer);
      const response = await stage.send({ externalId: each.transfer.externalId, body: each.body });
      responses.push(response);
      if (isAcknowledgement(response)) acknowledged.push(each);
    }
    const gap = findGap(stage, responses, bodies.length);
    const bookable = acknowledged.filter(({ isBookable }) => isBookable);
    return {
      responses,
      toCount: bookable.map(({ transfer }) => ({ transfer, isExpected: true })),
      judge(bookings) {
        const all = acknowledged.map((each) => ({ ...each, bookings: bookings[bookable.indexOf(each)] }));
        const { wrong, unseen, note } = judge(all, bodies.length);
        return { wrong, unseen: join(unseen, gap.unseen), note: join(note, gap.note) };
      },
    };
  };
}

/** Returns what cannot be known because a response did not come. */
function findGap({ silence }: Stage, responses: readonly AttemptResponse[], all: number): Findings {
  if (silence !== undefined) return { unseen: silence };
  const broken = responses.filter((response) => 'error' in response).length;
  if (broken === 0) return {};
  const note = 'A connection broke. If the process has ended, anyone who sends such a body can end it.';
  return { note, unseen: broken > 1 ? `${broken} of ${all} bodies got no response.` : undefined };
}

/** A body that was booked once is not lost, unless it says two things. */
function judgeUnbookable(acknowledged: readonly Acknowledged[], all: number): Findings {
  const open = acknowledged.filter(({ isBookable, bookings }) => isBookable && bookings?.kind !== 'counted');
  const once = acknowledged.filter(({ bookings }) => bookings?.kind === 'counted' && bookings.times === 1);
  const faulty = acknowledged.filter((each) => !open.includes(each) && !once.includes(each));
  return {
    wrong: faulty.length > 0 ? `${count(faulty, all)}. What you cannot book counts as received.` : undefined,
    unseen: open.length > 0 ? `${count(open, all)}: right if your app has booked it. Give --count.` : undefined,
    note: once.length > 0 ? `Acknowledged and booked once, so not lost: ${list(once)}.` : undefined,
  };
}

function judgeUndocumented(acknowledged: readonly Acknowledged[], all: number): Findings {
  if (acknowledged.length === 0) return {};
  return { wrong: `${count(acknowledged, all)}. What is not as documented counts as received.` };
}

/** Bodies as `2 of 9 acknowledged: no event; data.id is missing`. */
function count(some: readonly Acknowledged[], all: number): string {
  return `${some.length} of ${all} acknowledged: ${list(some)}`;
}

function list(some: readonly Acknowledged[]): string {
  const titles = some.map(({ title }) => title);
  return [...titles.slice(0, 3), ...(titles.length > 3 ? ['…'] : [])].join('; ');
}
