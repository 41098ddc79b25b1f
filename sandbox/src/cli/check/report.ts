import { jsonLine, print, wrap } from '../../../../src/cli/terminal.js';
import type { Origin } from './load-service.js';
import type { Refusal } from './refusal.js';
import { join } from './trial.js';
import { toJson, toLines, type Row } from './rows.js';

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

export function report(rows: readonly Row[], { isStrict, isJson, unseen, refusal, advice }: ReportOptions): void {
  const summary = { ...summarize(rows, isStrict), unseen: [...findNames(rows, 'not seen'), ...unseen] };
  if (isJson) {
    const missing = refusal && `The first callback ${refusal.what}, so that nothing could be seen. ${refusal.advice}`;
    print(
      rows.map((row) => jsonLine(toJson(row))).join('') + jsonLine({ type: 'result', ...summary, missing, advice }),
    );
    return;
  }
  const isStricter = ({ trial }: Row): boolean => trial.group === 'stricter';
  const table = (some: readonly Row[]): string => some.map((row) => toLines(row, isStrict)).join('');
  if (refusal !== undefined) {
    const others = `${rows.length - 1} rows were not played, because the first callback ${refusal.what}.`;
    print(`${table(rows.slice(0, 1))}\n${others}\n`);
    return;
  }
  print(table(rows.filter((row) => !isStricter(row))));
  print(`\nStricter than documented${isStrict ? '' : ' (counts with --strict)'}:\n${table(rows.filter(isStricter))}\n`);
  const { right, wrong, lessStrict, notSeen } = summary;
  print(`${right} right, ${wrong} wrong, ${notSeen} not seen${lessStrict > 0 ? `, ${lessStrict} less strict` : ''}.\n`);
  const last = join(`Not seen: ${summary.unseen.join('; ')}.`, advice) ?? '';
  print(`${wrap(last, 80).join('\n')}\n`);
}

/** Whether a row is wrong by what was asked for. */
export function isWrong({ verdict, trial }: Row, isStrict: boolean): boolean {
  return verdict === 'wrong' && (isStrict || trial.group === 'documented');
}

function summarize(rows: readonly Row[], isStrict: boolean) {
  const wrong = rows.filter((row) => isWrong(row, isStrict)).length;
  return {
    right: findNames(rows, 'right').length,
    wrong,
    lessStrict: findNames(rows, 'wrong').length - wrong,
    notSeen: findNames(rows, 'not seen').length,
  };
}

function findNames(rows: readonly Row[], verdict: Row['verdict']): string[] {
  return rows.filter((row) => row.verdict === verdict).map(({ trial }) => trial.name);
}
