import type { AttemptResponse } from '../../attempt/attempt.js';
import { fit, jsonLine, paint, print, wrap } from '../../../../src/cli/terminal.js';
import { inWords } from '../in-words.js';
import type { FinalStatus } from './commands.js';
import { join, toSaid, type Judged } from './judge.js';
import type { Origin } from './load-service.js';

/** What a report shows beside its rows. */
export interface ReportOptions {
  readonly isJson: boolean;
  /** What no row shows. */
  readonly unseen: readonly string[];
  /** What to do if nothing could be seen; `undefined` if something was. The first row then has it as well. */
  readonly refusal: string | undefined;
  /** What to set so that more is seen; `undefined` if there is nothing. */
  readonly advice: string | undefined;
}

/** Prints where the definition of a service comes from, before its rows. */
export function reportOrigin({ service, source, readOn }: Origin, isJson: boolean): void {
  const words = `${service}, as read in public documentation on ${readOn}, not seen live. Source: ${source}.`;
  const origin = { type: 'service', service, source, readOn, isSeenLive: false };
  print(isJson ? jsonLine(origin) : `${wrap(words, 80).join('\n')}\n\n`);
}

/** Prints what will be booked, before the first callback. */
export function reportPlan(bookings: readonly FinalStatus[], isJson: boolean): void {
  const payouts = bookings.filter((status) => status === 'SUCCESS').length;
  const refunds = bookings.length - payouts;
  const words = `Your app will book about ${payouts} payouts and ${refunds} refunds: use a test database.`;
  print(isJson ? jsonLine({ type: 'plan', payouts, refunds }) : `${words}\n\n`);
}

export function report(rows: readonly Judged[], { isJson, unseen, refusal, advice }: ReportOptions): void {
  const name = (verdict: Judged['verdict']): string[] =>
    rows.filter((each) => each.verdict === verdict).map(({ row }) => row.name);
  const [right, wrong, lessStrict] = [name('right').length, name('wrong').length, name('less strict').length];
  const all = [...name('not seen'), ...unseen];
  const notSeen = name('not seen').length;
  const last = rows[0]?.responses.at(-1) ?? { error: '' };
  const what = 'status' in last ? 'was refused' : 'got no response';
  if (isJson) {
    const missing = refusal && `The first callback ${what}, so that nothing could be seen. ${refusal}`;
    const result = { type: 'result', right, wrong, lessStrict, notSeen, unseen: all, missing, advice };
    print([...rows.map(toJson), result].map(jsonLine).join(''));
  } else if (refusal !== undefined) {
    const others = `${rows.length - 1} rows were not played, because the first callback ${what}.`;
    print(`${rows.slice(0, 1).map(toLines).join('')}\n${others}\n`);
  } else {
    const less = lessStrict > 0 ? `, ${lessStrict} less strict (!)` : '';
    print(`${rows.map(toLines).join('')}\n${right} right, ${wrong} wrong, ${notSeen} not seen${less}.\n`);
    print(`${wrap(join(`Not seen: ${all.join('; ')}.`, advice), 80).join('\n')}\n`);
  }
}

const times = (n: number): string => (n === 0 ? 'never' : n === 1 ? 'once' : `${n} times`);

const signs = {
  right: paint('green', '✓'),
  wrong: paint('red', '✗'),
  'less strict': paint('yellow', '!'),
  'not seen': paint('dim', '◌'),
};

const widths = [18, 31, 16];

function toLines({ row, responses, bookings, because, notes, ids, verdict }: Judged): string {
  const results = responses.map(toResult);
  // For many bodies, and for concurrent copies, only the numbers count.
  const did = verdict === 'not seen' && results.length === 0 ? 'not seen' : inWords(toSorted(results));
  const cells = [row.name, row.right, fit(did, 30), bookings === undefined ? '' : times(bookings)];
  const line = cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ');
  // Whoever reads the log of the app finds it by these.
  const named = verdict === 'wrong' && ids.length > 0 ? [`Payouts: ${ids.slice(0, 4).join(' ')}`] : [];
  const below = [...because, ...notes, ...named].flatMap((text) => wrap(text, 76)).map((each) => `    ${each}\n`);
  return `${signs[verdict]} ${line.trimEnd()}\n${below.join('')}`;
}

const toSorted = (results: readonly string[]): readonly string[] => (results.length > 5 ? results.toSorted() : results);

function toResult(response: AttemptResponse): string {
  if ('status' in response) return String(response.status);
  if (response.error === 'response lost') return 'lost';
  return /^no (?:end of the )?response/.test(response.error) ? 'timeout' : 'broken';
}

function toJson({ row: { name, right }, responses, isOpen, ...judged }: Judged): object {
  const refused = responses.filter((response) => !('status' in response) || response.status >= 300);
  const said = [...new Set(refused.flatMap((response) => toSaid(response) ?? []))];
  return { type: 'trial', name, right, responses: responses.map(toResult), ...judged, isOpen, said };
}
