import type { AttemptResponse } from '../../attempt/attempt.js';
import { fit, paint, wrap } from '../../../../src/cli/terminal.js';
import { inWords } from '../in-words.js';
import type { Bookings, Books } from './books.js';
import type { Trial, Tried } from './trial.js';

type Described = Omit<Trial, 'play'>;

/** A trial and its verdict. */
export interface Row {
  readonly trial: Described;
  readonly responses: readonly AttemptResponse[];
  readonly bookings: number | undefined;
  readonly verdict: 'right' | 'wrong' | 'not seen';
  /** Why it is wrong or not seen, in sentences. */
  readonly because: readonly string[];
  readonly notes: readonly string[];
}

/** A trial that was played, and is not judged yet. */
export interface Played {
  readonly trial: Described;
  readonly tried: Tried;
  readonly note?: string | undefined;
}

export function unseenRow(trial: Described): Row {
  return { trial, responses: [], bookings: undefined, verdict: 'not seen', because: [], notes: [] };
}

/** Judges what was played, with what the books show if they can be counted. */
export async function toRows(played: readonly Played[], books: Books | undefined): Promise<Row[]> {
  const all = await books?.settle(played.flatMap(({ tried }) => tried.toCount));
  let place = 0;
  return played.map((each) => {
    const bookings = all?.slice(place, (place += each.tried.toCount.length)) ?? [];
    return toRow(each, bookings);
  });
}

function toRow({ trial, tried, note }: Played, bookings: readonly Bookings[]): Row {
  const { wrong, unseen, note: own, times: booked } = tried.judge(bookings);
  const verdict = wrong !== undefined ? 'wrong' : unseen !== undefined ? 'not seen' : 'right';
  const because = [wrong, unseen].filter((each) => each !== undefined);
  const notes = [note, own].filter((each) => each !== undefined);
  return { trial, responses: tried.responses, bookings: booked, verdict, because, notes };
}

const times = (n: number): string => (n === 0 ? 'never' : n === 1 ? 'once' : `${n} times`);

/** A fault that is none by the document of the service alone is a sign of its own. */
function signOf({ verdict, trial }: Row, isStrict: boolean): string {
  if (verdict === 'right') return paint('green', '✓');
  if (verdict === 'not seen') return paint('dim', '◌');
  return trial.group === 'documented' || isStrict ? paint('red', '✗') : paint('yellow', '!');
}

const widths = [18, 31, 16];

export function toLines(row: Row, isStrict: boolean): string {
  const { trial, responses, bookings, because, notes } = row;
  const results = responses.map(toResult);
  // For many bodies, and for concurrent copies, only the numbers count.
  const did = row.verdict === 'not seen' && results.length === 0 ? 'not seen' : inWords(toSorted(results));
  const cells = [trial.name, trial.right, fit(did, 30), bookings === undefined ? '' : times(bookings)];
  const line = cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ');
  const below = [...because, ...notes].flatMap((sentence) => wrap(sentence, 76)).map((each) => `    ${each}\n`);
  return `${signOf(row, isStrict)} ${line.trimEnd()}\n${below.join('')}`;
}

const toSorted = (results: readonly string[]): readonly string[] => (results.length > 5 ? results.toSorted() : results);

function toResult(response: AttemptResponse): string {
  if ('status' in response) return String(response.status);
  if (response.error === 'response lost') return 'lost';
  return /^no (?:end of the )?response/.test(response.error) ? 'timeout' : 'broken';
}

export function toJson({ trial, responses, ...judged }: Row): object {
  const { name, group, right } = trial;
  return { type: 'trial', name, group, right, responses: responses.map(toResult), ...judged };
}
