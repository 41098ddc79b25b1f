import type { AttemptResponse } from '../../attempt/attempt.js';
import { fit, jsonLine, paint, print, wrap } from '../../../../src/cli/terminal.js';
import { inWords } from '../in-words.js';
import type { FinalStatus } from './commands.js';
import { join, toSaid, type Judged } from './judge.js';
import type { Origin } from './load-service.js';
import type { Refusal } from './refusal.js';

/** What a report shows beside its rows. */
export interface ReportOptions {
  readonly isStrict: boolean;
  readonly isJson: boolean;
  /** What no row shows. */
  readonly unseen: readonly string[];
  /** Why nothing could be seen; `undefined` if something was. The first row then has the advice. */
  readonly refusal: Refusal | undefined;
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

export function report(rows: readonly Judged[], { isStrict, isJson, unseen, refusal, advice }: ReportOptions): void {
  const summary = { ...summarize(rows, isStrict), unseen: [...findNames(rows, 'not seen'), ...unseen] };
  if (isJson) {
    const missing = refusal && `The first callback ${refusal.what}, so that nothing could be seen. ${refusal.advice}`;
    print(
      rows.map((row) => jsonLine(toJson(row))).join('') + jsonLine({ type: 'result', ...summary, missing, advice }),
    );
    return;
  }
  const table = (some: readonly Judged[]): string => some.map((row) => toLines(row, isStrict)).join('');
  if (refusal !== undefined) {
    const others = `${rows.length - 1} rows were not played, because the first callback ${refusal.what}.`;
    print(`${table(rows.slice(0, 1))}\n${others}\n`);
    return;
  }
  print(`${table(rows)}\n`);
  const { right, wrong, lessStrict, notSeen } = summary;
  const less = lessStrict > 0 ? `, ${lessStrict} less strict (!)` : '';
  print(`${right} right, ${wrong} wrong, ${notSeen} not seen${less}.\n`);
  const last = join(`Not seen: ${summary.unseen.join('; ')}.`, advice) ?? '';
  print(`${wrap(last, 80).join('\n')}\n`);
}

/** Whether a row is wrong by what was asked for. */
export function isWrong({ verdict }: Judged, isStrict: boolean): boolean {
  return verdict === 'wrong' || (isStrict && verdict === 'less strict');
}

function summarize(rows: readonly Judged[], isStrict: boolean) {
  const wrong = rows.filter((row) => isWrong(row, isStrict)).length;
  return {
    right: findNames(rows, 'right').length,
    wrong,
    lessStrict: isStrict ? 0 : findNames(rows, 'less strict').length,
    notSeen: findNames(rows, 'not seen').length,
  };
}

function findNames(rows: readonly Judged[], verdict: Judged['verdict']): string[] {
  return rows.filter((each) => each.verdict === verdict).map(({ row }) => row.name);
}

const times = (n: number): string => (n === 0 ? 'never' : n === 1 ? 'once' : `${n} times`);

function signOf(row: Judged, isStrict: boolean): string {
  if (row.verdict === 'right') return paint('green', '✓');
  if (row.verdict === 'not seen') return paint('dim', '◌');
  return isWrong(row, isStrict) ? paint('red', '✗') : paint('yellow', '!');
}

const widths = [18, 31, 16];

function toLines(judged: Judged, isStrict: boolean): string {
  const { row, responses, bookings, because, notes, ids, verdict } = judged;
  const results = responses.map(toResult);
  // For many bodies, and for concurrent copies, only the numbers count.
  const did = verdict === 'not seen' && results.length === 0 ? 'not seen' : inWords(toSorted(results));
  const cells = [row.name, row.right, fit(did, 30), bookings === undefined ? '' : times(bookings)];
  const line = cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ');
  // Whoever reads the log of the app finds it by these.
  const named = isWrong(judged, isStrict) && ids.length > 0 ? [`Payouts: ${ids.slice(0, 4).join(' ')}`] : [];
  const below = [...because, ...notes, ...named].flatMap((text) => wrap(text, 76)).map((each) => `    ${each}\n`);
  return `${signOf(judged, isStrict)} ${line.trimEnd()}\n${below.join('')}`;
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
