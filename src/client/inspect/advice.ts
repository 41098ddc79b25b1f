import type { StoreRecord } from '../../core/store.js';
import type { TransferClientError } from '../errors.js';
import { describeOpen, translateStatus } from '../open-status.js';
import type { TransferVerdict, RecordReading, ServiceReading } from './verdict.js';

/** What a verdict means and what to do, each in one or two sentences. */
interface Advice {
  meaning: string;
  advice: string;
}

/** Returns what a verdict means and what to do next. */
export function advise(verdict: TransferVerdict, findings: Findings): Advice {
  const { service, record } = findings;
  switch (verdict) {
    case 'undecided':
      return adviseUndecided(service, record);
    case 'in_progress':
      return adviseInProgress(findClaim(record as Exclude<RecordReading, { state: 'unread' }>));
    case 'open':
    case 'unfounded':
      return adviseOpen(verdict, service as Extract<ServiceReading, { state: 'open' }>);
    case 'missed':
      return adviseMissed(service as Extract<ServiceReading, { state: 'final' }>, findings);
    case 'handled':
    case 'conflict':
    case 'unknown':
      return advices[verdict];
  }
}

/** Returns the claim of the transfer, or of its reversal. */
function findClaim(record: Exclude<RecordReading, { state: 'unread' }>): Claimed | undefined {
  return [record, record.reversal].find((each): each is Claimed => each?.state === 'claimed');
}

type Claimed = Extract<StoreRecord, { state: 'claimed' }>;

interface Findings {
  readonly service: ServiceReading;
  readonly record: RecordReading;
  /** For how long the receiver keeps a record, if that is known. */
  readonly retentionMs: number | undefined;
}

const advices: Readonly<Record<'handled' | 'conflict' | 'unknown', Readonly<Advice>>> = {
  handled: {
    meaning: 'The handler has succeeded, for the facts that the service reports, or the money was refunded before.',
    advice: 'Nothing is left to do here. If the payout still looks open, look into your own books.',
  },
  conflict: {
    meaning: 'The handler has succeeded, for other facts than the service reports now.',
    advice:
      'Inspect it again in some minutes, because a query may lag. If nothing changes, trust the service: correct your ' +
      'own books by hand, and do not run the handler again.',
  },
  unknown: {
    meaning: 'The service does not know the transfer, and there is no record.',
    advice: 'Check the id and the address of the service. Do not conclude that the transfer has failed.',
  },
};

const whatToDoWhileOpen = {
  open:
    'Wait: the service sends the callback when the transfer is final. If your books say that it is older than a day, ' +
    'contact the payout service.',
  unfounded:
    'Inspect it again in some minutes, because a query may lag. A service may also give such a status after a success, ' +
    'while the money is on its way back: wait for its end. If it stays so, the callback may have been forged: compare ' +
    'with your own books, contact the payout service, and verify or confirm every callback.',
};

function adviseOpen(
  verdict: 'open' | 'unfounded',
  { transaction, seemsFinal }: Extract<ServiceReading, { state: 'open' }>,
): Advice {
  const described = describeOpen(transaction.status);
  const advice = whatToDoWhileOpen[verdict];
  return {
    meaning: verdict === 'open' ? `T${described.slice(1)}.` : `The handler has succeeded, but ${described}.`,
    advice: seemsFinal ? `${translateStatus} Otherwise ${advice.charAt(0).toLowerCase()}${advice.slice(1)}` : advice,
  };
}

function adviseMissed(
  { finalAt }: Extract<ServiceReading, { state: 'final' }>,
  { record, retentionMs }: Findings,
): Advice {
  // The record of the success is there, so the record of its reversal, which is younger, cannot have expired.
  const isReversal = record.state === 'handled';
  const reconcile = `Reconcile it now, or leave it to the next reconciliation${isReversal ? ' of `paid`' : ''}.`;
  const lost = 'the store may have lost records (flush, eviction, failover, another prefix)';
  const look = 'The log shows whether callbacks came, and why they failed: search the id.';
  const isYoung = finalAt !== undefined && Date.now() - finalAt.getTime() < (retentionMs ?? 0);
  return {
    meaning: isReversal
      ? 'The success of the transfer was handled, and its reversal was not.'
      : 'The transfer is final, and there is no record.',
    // A handler that has succeeded would run again.
    advice:
      isYoung || isReversal
        ? `${reconcile} But if ${lost}, stop reconciliation and compare with your books first. ${look}`
        : `If it became final longer ago than \`retentionMs\` (7 days by default), or if ${lost}, stop reconciliation and ` +
          `compare with your books first. Otherwise: ${reconcile} ${look}`,
  };
}

function adviseInProgress({ by, leaseLeftMs }: Partial<Claimed> = {}): Advice {
  const seconds = leaseLeftMs === undefined ? undefined : Math.ceil(leaseLeftMs / 1_000);
  return {
    meaning: `A delivery is being handled${by === undefined ? '' : ` by ${by}`}.`,
    advice:
      seconds === undefined
        ? 'Wait, and inspect it again. If its holder has died, the claim becomes free by itself.'
        : `Wait ${seconds} s, and inspect it again. If its holder has died, the claim is free by then.`,
  };
}

const handledUnknown: Readonly<Advice> = {
  meaning: 'The handler has succeeded, but the service responded with 404.',
  advice:
    'Check the address and the API key of the service first: with those of another environment it responds so for every ' +
    'transfer. What its 404 means is not documented, so compare with your own books, and ask the payout service.',
};

const handledUnreadably: Readonly<Advice> = {
  meaning: 'The handler has succeeded, but the facts in its record cannot be read.',
  advice:
    'Another version of this package has written it, or a store of your own. Compare what the service responds with your ' +
    'own books.',
};

function adviseUndecided(service: ServiceReading, record: RecordReading): Advice {
  const isHandled = record.state !== 'unread' && [record.state, record.reversal?.state].includes('handled');
  if (isHandled && service.state !== 'unread') {
    return service.state === 'unknown' ? handledUnknown : handledUnreadably;
  }
  const unread: string[] = [];
  if (service.state === 'unread') {
    unread.push(`the service ${service.error === undefined ? 'was not read' : 'could not be read'}`);
  }
  if (record.state === 'unread') unread.push('the record could not be read');
  // Your own id is not a key of the store, so `free` proves nothing if the given id is yours.
  const guess =
    record.state === 'unread'
      ? ''
      : ' Until then the record is that of the given id, and counts only if that is the id of the service.';
  const checks = [
    service.state === 'unread' && service.error !== undefined ? whatToCheck(service.error) : '',
    record.state === 'unread' ? checkStore : '',
  ];
  return {
    meaning: `Nothing can be concluded: ${unread.join(', and ')}.`,
    advice: [...checks, `Inspect it again when both can be read.${guess}`].filter((each) => each !== '').join(' '),
  };
}

const checkStore = 'Check that the store can be reached, and that it is the one of your app.';

/** Returns what to check when the service could not be read. Its message has the address that was asked. */
function whatToCheck({ code, status, authenticationFaults, cause }: TransferClientError): string {
  if (authenticationFaults.length > 0) {
    const faults = authenticationFaults.join(', ').replaceAll('_', ' ');
    return `Check the API key and its secret: ${String(status)} can mean ${faults} (service §5.4).`;
  }
  if (code !== 'UNAVAILABLE' || status !== undefined) return '';
  const reason = String((cause as NodeJS.ErrnoException | undefined)?.code);
  if (/ENOTFOUND|EAI_AGAIN/.test(reason)) return 'Check the name in the address of the service, and DNS.';
  if (/SSL|TLS|CERT|SIGNATURE|EPROTO/.test(reason)) {
    return 'Check whether the address of the service begins with http or https, and its certificate.';
  }
  return 'Check the address of the service, and whether this machine may connect to it.';
}
