import type { Transaction, TransferInspection } from '../client.js';
import { fit, messageOf, paint, printable, width, wrap, type Style } from './terminal.js';

const styles: Readonly<Record<TransferInspection['verdict'], Style>> = {
  open: 'cyan',
  in_progress: 'cyan',
  handled: 'green',
  missed: 'yellow',
  conflict: 'red',
  unfounded: 'red',
  unknown: 'yellow',
  undecided: 'red',
};

const labelWidth = 12;

/**
 * Renders an inspection for people: what the service responds, what the store has, the verdict, and what to do next.
 */
export function inspectionReport(inspection: TransferInspection, configFile: string | undefined): string {
  const { service, record, verdict, meaning, advice } = inspection;
  const known = 'transaction' in service ? service.transaction : undefined;
  const reversal = record.state === 'unread' ? undefined : record.reversal;
  const rows = [
    ...(known === undefined ? [] : [row('id', known.id)]),
    row('service', describeService(service)),
    ...rowsOf('record', record),
    ...(reversal === undefined ? [] : rowsOf('reversal', reversal)),
    row('verdict', `${verdict}: ${meaning}`, styles[verdict]),
    row('next', advice),
  ];
  // A service may be asked by one of its ids only: the given one was.
  const command = verdict === 'missed' ? `\n  ${reconcileCommand(inspection.id, configFile)}\n` : '';
  return `${paint('bold', fit(titleOf(inspection), width()))}\n\n${rows.join('')}${command}`;
}

/** Renders an inspection as one line. */
export function inspectionLine(inspection: TransferInspection): string {
  const { verdict } = inspection;
  return `${paint(styles[verdict], verdict.padEnd(verdictWidth))}  ${fit(titleOf(inspection), width() - verdictWidth - 2)}\n`;
}

const verdictWidth = 'in_progress'.length;

/** The id that people know, and the payout as far as it is known. */
function titleOf({ id, service }: TransferInspection): string {
  const known = 'transaction' in service ? service.transaction : undefined;
  if (known === undefined) return printable(id);
  const shownId = known.externalId === '' ? id : known.externalId;
  return printable(`${shownId}  ${describePayout(known)}`.trimEnd());
}

/** The command that has the transfer handled, with the configuration that was given. */
function reconcileCommand(id: string, configFile: string | undefined): string {
  const config = configFile === undefined ? [] : ['--config', toShellWord(configFile)];
  // `echo` takes a word that begins with a dash for an option.
  const print = id.startsWith('-') ? String.raw`printf '%s\n'` : 'echo';
  return [print, toShellWord(id), '| npx --no transfer-callbacks reconcile', ...config].join(' ');
}

function row(label: string, text: string, style?: Style): string {
  return wrap(printable(text), width() - labelWidth)
    .map((line, index) => {
      const head = paint('dim', `  ${index === 0 ? label : ''}`.padEnd(labelWidth));
      return `${head}${style === undefined ? line : paint(style, line)}\n`;
    })
    .join('');
}

function describeService(service: TransferInspection['service']): string {
  switch (service.state) {
    case 'final': {
      const { finalAt, event, transaction } = service;
      // The word of a service that was defined may be any.
      const meaning = statuses[event] === transaction.status ? '' : ` (${statuses[event]})`;
      const since = finalAt === undefined ? '' : ` since ${toUtc(finalAt)}, ${toServiceAge(finalAt)}`;
      return `${transaction.status}${meaning}${since}`;
    }
    case 'open':
      return `${service.transaction.status}, not final`;
    case 'unknown':
      return 'not known: it responded with 404';
    case 'unread':
      return toOneLine(service.error);
  }
}

const statuses = {
  'transfer.success': 'SUCCESS',
  'transfer.failed': 'FAILED',
  'transfer.reversed': 'REVERSED',
} as const;

const rowsOf = (label: string, record: TransferInspection['record']): string[] =>
  describeRecord(record).map((line, index) => row(index === 0 ? label : '', line));

function describeRecord(record: TransferInspection['record']): string[] {
  switch (record.state) {
    case 'free':
      return ['none'];
    case 'claimed': {
      const { by, since, leaseLeftMs, delivery } = record;
      const left = leaseLeftMs === undefined ? '' : `, lease left ${Math.ceil(leaseLeftMs / 1_000)} s`;
      const begun = since === undefined ? '' : ` since ${toUtc(since)}, ${toAge(since)}`;
      return [`claimed${begun}${left}`, ...(by === undefined ? [] : [`by ${by}`]), ...named(delivery)];
    }
    case 'handled': {
      const { handledAt, expiresAt, fingerprint, delivery } = record;
      const at = handledAt === undefined ? '' : ` ${toUtc(handledAt)}, ${toAge(handledAt)}`;
      const until = expiresAt === undefined ? [] : [`kept until ${toUtc(expiresAt)}`];
      return [`handled${at}`, `facts ${fingerprint}`, ...until, ...named(delivery)];
    }
    case 'unread':
      return [`not read: ${toOneLine(record.error)}`];
  }
}

/** Returns the message of an error as one line, because messages of Prisma have several. */
function toOneLine(error: unknown): string {
  return messageOf(error).replaceAll(/\s+/g, ' ').trim();
}

function named(delivery: string | undefined): string[] {
  return delivery === undefined ? [] : [`delivery ${delivery}`];
}

/** A string as one word of a shell. */
function toShellWord(text: string): string {
  const shown = printable(text);
  return /^[\w.:@+][\w.:@+-]*$/.test(shown) ? shown : `'${shown.replaceAll("'", String.raw`'\''`)}'`;
}

/** What is paid out and how, in one line. Only ids and status are sure to be there (service §4.2). */
function describePayout({ amount, currency, paymentMethod, provider }: Transaction): string {
  const isShown = (part: unknown): part is string | number => typeof part === 'string' || typeof part === 'number';
  const money = [amount, currency].filter(isShown).join(' ');
  return [money, paymentMethod, provider].filter(isShown).join('  ').trim();
}

/** A time to the second, such as `2026-10-05 02:41:07 UTC`. */
function toUtc(at: Date): string {
  return `${at.toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

const units = [
  ['s', 1_000, 120],
  ['min', 60_000, 120],
  ['h', 3_600_000, 48],
  ['days', 86_400_000, Infinity],
] as const;

/** How long ago, such as `17 min ago`. A time that has not come yet was 0 s ago: two clocks differ. */
function toAge(at: Date): string {
  return `${toDuration(Math.max(0, Date.now() - at.getTime()))} ago`;
}

/**
 * Returns the age of a time of the service, whose clock may be far ahead, such as the clock of a sandbox with
 * `--speed`.
 */
function toServiceAge(at: Date): string {
  const aheadMs = at.getTime() - Date.now();
  return aheadMs < 1_000 ? toAge(at) : `in ${toDuration(aheadMs)} by the service's clock`;
}

function toDuration(durationMs: number): string {
  const [name, ms] = units.find(([, unitMs, most]) => durationMs < most * unitMs) ?? units[3];
  return `${Math.floor(durationMs / ms)} ${name}`;
}
