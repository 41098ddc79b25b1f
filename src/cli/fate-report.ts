import type { RecordReading, ServiceReading, TransferFate } from '../client/index.js';
import { describePayout } from './service.js';
import { fit, messageOf, paint, printable, width, wrap, type Style } from './terminal.js';
import { toAge, toUtc } from './times.js';

const styles: Readonly<Record<TransferFate['verdict'], Style>> = {
  open: 'cyan',
  in_progress: 'cyan',
  handled: 'green',
  missed: 'yellow',
  missed_or_forgotten: 'yellow',
  conflict: 'red',
  unfounded: 'red',
  unknown: 'yellow',
  undecided: 'red',
};

const labelWidth = 12;

/** Renders a fate for people: what the service responds, what the store has, the verdict, and what to do next. */
export function fateReport(fate: TransferFate): string {
  const { id, service, record, verdict, meaning, advice } = fate;
  const known = 'transaction' in service ? service.transaction : undefined;
  const name = known?.externalId ?? id;
  const title = known === undefined ? name : `${name}  ${describePayout(known)}`;
  const rows = [
    ...(known === undefined ? [] : [row('id', known.id)]),
    row('service', describeService(service)),
    ...describeRecord(record).map((line, index) => row(index === 0 ? 'record' : '', line)),
    row('verdict', `${verdict}: ${meaning}`, styles[verdict]),
    row('next', advice),
  ];
  const command =
    verdict === 'missed' ? `\n  npx transfer-callbacks resend ${toShellWord(name)} --to CALLBACK_URL\n` : '';
  return `${paint('bold', fit(printable(title.trimEnd()), width()))}\n\n${rows.join('')}${command}`;
}

function row(label: string, text: string, style?: Style): string {
  return wrap(printable(text), width() - labelWidth)
    .map((line, index) => {
      const head = paint('dim', `  ${index === 0 ? label : ''}`.padEnd(labelWidth));
      return `${head}${style === undefined ? line : paint(style, line)}\n`;
    })
    .join('');
}

function describeService(service: ServiceReading): string {
  switch (service.state) {
    case 'final': {
      const { finalAt, transaction } = service;
      return finalAt === undefined
        ? transaction.status
        : `${transaction.status} since ${toUtc(finalAt)}, ${toAge(finalAt)}`;
    }
    case 'open':
      return `${service.transaction.status}, not final`;
    case 'unknown':
      return 'not known: it responded with 404';
    case 'unread':
      return service.error === undefined ? 'not asked: TRANSFER_SERVICE_URL is not set' : service.error.message;
  }
}

/** One line or more. */
function describeRecord(record: RecordReading): string[] {
  switch (record.state) {
    case 'free':
      return ['none'];
    case 'claimed': {
      const { by, since, leaseLeftMs, delivery } = record;
      const left = leaseLeftMs === undefined ? '' : `, lease left ${Math.ceil(leaseLeftMs / 1_000)} s`;
      const begun = since === undefined ? '' : ` since ${toUtc(since)}, ${toAge(since)}`;
      return [`claimed${begun}${left}`, ...(by === undefined ? [] : [`by ${by}`]), ...named(delivery)];
    }
    case 'settled': {
      const { settledAt, expiresAt, fingerprint, delivery } = record;
      const at = settledAt === undefined ? '' : ` ${toUtc(settledAt)}, ${toAge(settledAt)}`;
      const until = expiresAt === undefined ? [] : [`kept until ${toUtc(expiresAt)}`];
      return [`handled${at}`, `facts ${fingerprint}`, ...until, ...named(delivery)];
    }
    case 'unread': {
      const { error } = record;
      return [error === undefined ? 'not read: neither REDIS_URL nor DATABASE_URL is set' : messageOf(error)];
    }
  }
}

function named(delivery: string | undefined): string[] {
  return delivery === undefined ? [] : [`delivery ${delivery}`];
}

/** A text as one word of a shell. */
function toShellWord(text: string): string {
  const shown = printable(text);
  return /^[\w.:@+][\w.:@+-]*$/.test(shown) ? shown : `'${shown.replaceAll("'", String.raw`'\''`)}'`;
}
