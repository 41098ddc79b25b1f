import type { FinalStatus, Transfer } from './commands.js';
import type { Event, Service } from './service.js';

/** What may be wrong with an attempt of the service. `broken`: the app cannot book it, between --break and --mend. */
export type Fault = 'pieces' | 'half' | 'text/plain' | 'response lost' | 'an old timestamp' | 'broken';

/** How someone calls the endpoint who has no secret. */
export type Forgery =
  | 'no secret'
  | 'no signature'
  | 'an empty signature'
  | 'the signature of another callback'
  | 'the signature of another secret';

/** A callback. Unless it is sent `as` something else, attempts are made until one is acknowledged. */
export interface Step {
  /** `made`: the body of the transfer of its play. */
  readonly event: Event | 'made';
  /** One attempt, one more of what was acknowledged, or ten together. */
  readonly as?: 'once' | 'copy' | 'burst';
  /** What is wrong with the first attempt; `pieces` are for each. */
  readonly fault?: Fault | Forgery;
  /** What an acknowledgement is. Default: right. */
  readonly taken?: '!' | '! unless booked' | 'right if booked' | 'wrong if booked';
  /** What a refusal is. Default: wrong, and right for what is sent once. */
  readonly refused?: '!' | '! if 401' | 'right' | 'not seen';
}

/** How often a transfer must be booked in the end. `?`: it is counted, and any number is right. */
export type Booked = Readonly<Partial<Record<FinalStatus, 0 | 1 | '0..1' | '?'>>>;

/** What happens to one transfer. */
export interface Play {
  readonly send: readonly Step[];
  readonly booked: Booked;
  /** What is special about it, if a row has several kinds. */
  readonly title?: string;
  /** Set if --count cannot tell what it counts. */
  readonly isBlind?: boolean;
  /** Set for a body that is not an event. The service knows no such transfer. */
  readonly transfer?: Transfer;
}

/** What rows are made for. */
export interface Scene {
  readonly service: Service;
  readonly forgeries: readonly Forgery[];
}

/** What a right endpoint does: a row of the table, of the help and of the README. */
export interface Row {
  readonly name: string;
  readonly sent: string;
  readonly right: string;
  readonly toPlays: (scene: Scene) => readonly Play[];
  /** What is `!`. */
  readonly less?: string;
  /** What is wrong if a booking is counted that must not be. */
  readonly never?: string;
  /** What a refusal costs. */
  readonly cost?: string;
  /** The gap of a service that leaves it out, beside the gaps of its events and faults. */
  readonly needs?: string;
  /** Whether a failure and its reversal may be refunded once in all: `!` for more where no document shows both. */
  readonly isOnceInAll?: true;
}

type Plays = readonly Play[] | Row['toPlays'];

function row(name: string, sent: string, right: string, plays: Plays, special: Partial<Row> = {}): Row {
  return { name, sent, right, toPlays: typeof plays === 'function' ? plays : () => plays, ...special };
}

const play = (booked: Booked, ...send: readonly Step[]): Play => ({ send, booked });
/** One burst missed a race of 3 ms twice in 14 trials. */
const thrice = (each: Play): readonly Play[] => [each, each, each];

const once: Booked = { SUCCESS: 1 };
const refund: Booked = { SUCCESS: 0, FAILED: 1 };
const reversal: Booked = { SUCCESS: '0..1', REVERSED: 1 };
const nothing: Booked = { SUCCESS: 0, FAILED: 0 };

const paid: Step = { event: 'success' };
const failed: Step = { event: 'failed' };
const reversed: Step = { event: 'reversed' };
const copy = (step: Step): Step => ({ ...step, as: 'copy' });
const burst = (step: Step): Step => ({ ...step, as: 'burst' });
const single = (step: Step, more: Partial<Step> = {}): Step => ({ ...step, as: 'once', ...more });

const repeats = { cost: 'The service repeats what you have handled.' };
const unread = { cost: 'What you could not read is lost.' };
const ofFailure = { never: 'A failed payout was booked as paid.' };
const acknowledges = 'acknowledges it';
const next = 'acknowledges the next attempt';

/** A state that is not final, alone and before what follows. */
function toPending({ service }: Scene): readonly Play[] {
  const pending = single({ event: 'pending' }, { refused: '!' });
  return service.traits.pendingFollows === 'success'
    ? [play({ REVERSED: 0, FAILED: 0, SUCCESS: '?' }, paid, pending), play(reversal, paid, pending, reversed)]
    : [play(nothing, pending), play({ FAILED: 0, SUCCESS: 1 }, pending, paid)];
}

/** Whether --count has one word for both is seen where only a failure came. */
function toReversedFailure({ service: { traits } }: Scene): readonly Play[] {
  const step: Step = traits.reversesFailures === true ? reversed : { ...reversed, refused: 'right' };
  return [play({ FAILED: '?', REVERSED: '?' }, failed, step, copy(step)), play({ REVERSED: '?' }, failed)];
}

const toBodies = (bodies: ReturnType<Service['unbookable']>): readonly Play[] =>
  bodies.map(({ title, transfer, isBookable }): Play => {
    const step: Step = { event: 'made', as: 'once', taken: isBookable ? '! unless booked' : '!' };
    return { ...play(isBookable ? { FAILED: '?', SUCCESS: '?' } : {}, step), title, transfer };
  });

const toForged = ({ forgeries }: Scene): readonly Play[] => [
  ...forgeries.map((fault) => play({ SUCCESS: 0 }, single(paid, { fault, taken: 'wrong if booked' }))),
  play({}, { ...paid, refused: 'not seen' }),
];

/** Every row, in the order of playing. Those that may lock a sender out, or keep the app from booking, are last. */
// prettier-ignore
export const rows: readonly Row[] = [
  row('success', 'a success', acknowledges, [play(once, paid)]),
  row('failed', 'a failure', acknowledges, [play(refund, failed)], ofFailure),
  row('duplicate', 'a success, and its copy', 'acknowledges the copy', [play(once, paid, copy(paid))], repeats),
  row('burst', 'ten copies of a success together', 'acknowledges one of ten', thrice(play(once, burst(paid)))),
  row('response-lost', 'a success again, because the response was lost', next, [play(once, { ...paid, fault: 'response lost' })]),
  row('failed-duplicate', 'a failure, and its copy', 'acknowledges the copy', [play(refund, failed, copy(failed))],
    { ...ofFailure, ...repeats }),
  row('failed-burst', 'ten copies of a failure together', 'acknowledges one of ten', thrice(play(refund, burst(failed))), ofFailure),
  row('failed-lost', 'a failure again, because the response was lost', next, [play(refund, { ...failed, fault: 'response lost' })],
    ofFailure),
  row('reversed', 'a success, its reversal, and the copy of that', 'refunds once', [play(reversal, paid, reversed, copy(reversed))], repeats),
  row('reversed-burst', 'a success, and ten copies of its reversal', 'refunds once', thrice(play(reversal, paid, burst(reversed)))),
  row('reversed-first', 'a reversal, then its success', 'refunds once',
    [play(reversal, single(reversed), { ...paid, refused: '!' }, reversed)],
    { less: 'A success after its reversal was refused, so the service repeats it.' }),
  row('success-again', 'a success, its reversal, and the success again', 'refunds once',
    [play(reversal, paid, reversed, { ...copy(paid), refused: '!' })],
    { less: 'The copy of a success was refused after its reversal, so the service repeats it.' }),
  row('failed-reversed', 'a failure, its reversal, and the copy of that', 'refunds once in all', toReversedFailure, { isOnceInAll: true }),
  row('pending', 'a state that is not final, and then its end', 'books nothing yet', toPending,
    { never: 'A payout without an outcome was booked.', less: 'A state that is not final was refused, so the service repeats it.' }),
  row('slow-sender', 'the body in small pieces', acknowledges, [play(once, { ...paid, fault: 'pieces' })],
    { cost: 'Over a bad line no callback reaches you.' }),
  row('malformed', 'half of the body, then the whole', 'refuses it, takes the whole',
    [play(once, { ...paid, fault: 'half', taken: 'right if booked' })], unread),
  row('wrong-content-type', 'a success as text/plain, then as JSON', 'books it, or takes the JSON',
    [play(once, { ...paid, fault: 'text/plain', taken: 'right if booked' })], unread),
  row('unbookable', 'bodies without an id or a state, or of something else', 'refuses each body',
    ({ service }) => toBodies(service.unbookable()), { less: 'A body that you cannot book counts as received.' }),
  row('unknown-state', 'a state that no document has', 'refuses it, books nothing',
    [play(nothing, { event: 'unknown', as: 'once', taken: '!' })],
    { never: 'A state that the definition does not have was booked.',
      less: 'A state that the definition does not have was acknowledged. If it is an outcome, it is lost.' }),
  row('foreign-event', 'an event that is none of your transfers', 'acknowledges it, books nothing', [play(nothing, { event: 'foreign' })],
    { never: 'An event that is none of your transfers was booked.', cost: 'The service repeats it, and may turn your endpoint off.' }),
  row('flip', 'a failure, then a success', 'refuses SUCCESS after FAILED',
    [play({ SUCCESS: '?', FAILED: '0..1' }, failed, single(paid, { taken: '!' }))],
    { less: 'SUCCESS was acknowledged after FAILED: you have refunded what was paid, and nobody learns of it.' }),
  row('failed-after', 'a success, then a failure', 'books one of both', [play({ FAILED: '?', SUCCESS: '?' }, paid, single(failed))],
    { less: 'FAILED after SUCCESS was booked beside it: one payout counts as both.' }),
  row('other-amount', 'a success, then one with another amount', 'refuses it for a known id',
    [play({ SUCCESS: '?' }, paid, { event: 'other amount', as: 'once', taken: '!' })],
    { less: 'Another amount under the same id was acknowledged: your books and the service disagree.' }),
  row('other-spelling', 'the same JSON with blanks, `\\/` and `100.00`', acknowledges,
    [play(once, { event: 'other spelling', refused: '! if 401' })],
    { less: 'The same JSON in another spelling was not believed: verify the bytes, not what you have parsed.' }),
  row('old-timestamp', 'a signature that was made a day ago', 'refuses it',
    [play({ SUCCESS: '?' }, single(paid, { fault: 'an old timestamp', taken: '!' }))],
    { less: 'A signature of yesterday was believed: whoever records a callback can send it later.' }),
  row('list', 'a list of two successes', 'refuses it, or books both',
    [play({ SUCCESS: '?' }, { event: 'list', as: 'once', taken: '! unless booked' })],
    { less: 'A list was acknowledged, and not each of it was booked.' }),
  row('undocumented', 'bodies with a field that is not as documented', 'refuses each body',
    ({ service: { traits } }) => toBodies(traits.undocumented?.() ?? []),
    { less: 'A body that is not as documented counts as received.', needs: 'undocumented' }),
  row('forged', 'a success that is not signed, or not rightly', 'does not believe it', toForged,
    { never: 'Anyone who knows the address can have a payout count as paid.', needs: 'forged' }),
  row('forged-first', 'a forged success, then the right one', 'books the right one',
    ({ forgeries }) => [play(once, ...forgeries.map((fault) => single(paid, { fault })), paid)],
    { cost: 'Whoever guesses an id can lose a payout.', needs: 'forged' }),
  row('handler-fails', 'a success between --break and --mend, then again', 'refuses it, takes the retry',
    [play(once, { ...paid, fault: 'broken', taken: 'right if booked' })]),
];

/** Returns a play as it is counted without $STATUS: one number tells no refund from a payment. */
export function withoutStatus(play: Play): Play {
  const { booked } = play;
  const all = Object.values(booked);
  const isRefund = booked.FAILED === 1;
  const right = all.every((each) => each === 0) ? 0 : isRefund ? '0..1' : (booked.SUCCESS ?? '?');
  if (booked.REVERSED !== undefined) return { ...play, booked: { SUCCESS: '?' }, isBlind: true };
  return all.length === 0 ? play : { ...play, booked: { SUCCESS: right }, isBlind: isRefund };
}

/** Returns why a row cannot be played; `undefined` if it can. */
export function findGap({ needs = '' }: Row, plays: readonly Play[], gaps: Service['gaps']): string | undefined {
  const steps = plays.flatMap(({ send }) => send.flatMap(({ event, fault = '' }) => [event, fault]));
  return [needs, ...steps].map((name) => gaps[name]).find((gap) => gap !== undefined);
}

/** The outcome that an event of a transfer reports. */
export const outcomeOf: Readonly<Partial<Record<Step['event'], FinalStatus>>> = {
  ...{ success: 'SUCCESS', failed: 'FAILED', reversed: 'REVERSED' },
  ...{ 'other amount': 'SUCCESS', 'other spelling': 'SUCCESS', list: 'SUCCESS' },
};

/** Returns the outcomes that a right app may book, for all plays. */
export function listBookings(plays: readonly Play[]): readonly FinalStatus[] {
  return plays.flatMap(({ send, booked, transfer }) => {
    const outcomes = new Set(transfer === undefined ? send.map(({ event }) => outcomeOf[event]) : ['SUCCESS']);
    return (Object.keys(booked) as FinalStatus[]).filter((status) => booked[status] !== 0 && outcomes.has(status));
  });
}
