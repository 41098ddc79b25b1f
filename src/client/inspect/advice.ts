import type { StoreRecord } from '../../core/store.js';
import type { TransferClientError } from '../errors.js';
import type { TransferVerdict, RecordReading, ServiceReading } from './verdict.js';

/** What a verdict means and what to do, each in one or two sentences. */
interface Advice {
  meaning: string;
  advice: string;
}

/** Returns what a verdict means and what to do next. */
export function advise(verdict: TransferVerdict, service: ServiceReading, record: RecordReading): Advice {
  if (verdict === 'undecided') return adviseUndecided(service, record);
  if (verdict === 'in_progress') return adviseInProgress(record as Extract<StoreRecord, { state: 'claimed' }>);
  return advices[verdict];
}

const advices: Readonly<Record<Exclude<TransferVerdict, 'in_progress' | 'undecided'>, Readonly<Advice>>> = {
  open: {
    meaning: 'The service has not finished this transfer.',
    advice:
      'Wait: the service sends the callback when the transfer is final. If your books say that it is older than six hours, ' +
      'contact the provider.',
  },
  handled: {
    meaning: 'The handler has succeeded, for the facts that the service gives.',
    advice: 'Nothing is left to do here. If the payout still looks open, look into your own books.',
  },
  missed: {
    meaning: 'The transfer is final, and there is no record.',
    advice:
      'If it became final longer ago than `retentionMs` (7 days by default), or if the store may have lost records (flush, ' +
      'eviction, failover, another prefix), stop reconciliation and compare with your books. Otherwise the next ' +
      'reconciliation handles it, or reconcile this transfer now.',
  },
  conflict: {
    meaning: 'The handler has succeeded, for other facts than the service gives now.',
    advice: 'Trust the service. Correct your own books by hand, and do not run the handler again.',
  },
  unfounded: {
    meaning: 'The handler has succeeded, but for the service the transfer is not final.',
    advice:
      'Inspect it again in some minutes, because a query may lag. If nothing changes, the callback was forged: correct ' +
      'your own books, and verify or confirm every callback from now on.',
  },
  unknown: {
    meaning: 'The service responded with 404, and there is no record.',
    advice: 'Check the id and the address of the service. Do not conclude that the transfer has failed.',
  },
};

function adviseInProgress({ by, leaseLeftMs }: Extract<StoreRecord, { state: 'claimed' }>): Advice {
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
    'transfer. What its 404 means is not documented, so compare with your own books, and ask the provider.',
};

const handledUnreadably: Readonly<Advice> = {
  meaning: 'The handler has succeeded, but the facts in its record cannot be read.',
  advice:
    'Another version of this package has written it, or a store of your own. Compare what the service responds with your ' +
    'own books.',
};

function adviseUndecided(service: ServiceReading, record: RecordReading): Advice {
  if (record.state === 'settled' && service.state !== 'unread') {
    return service.state === 'unknown' ? handledUnknown : handledUnreadably;
  }
  const unread: string[] = [];
  if (service.state === 'unread') unread.push(`the service ${describeFault(service.error)}`);
  if (record.state === 'unread') unread.push(`the record ${describeFault(record.error)}`);
  // Your own id is no key of the store, so that `free` proves nothing then.
  const guess =
    record.state === 'unread'
      ? ''
      : ' Until then the record is that of the given id, and counts only if that is the id of the service.';
  const checks = [
    service.state === 'unread' && service.error !== undefined ? whatToCheck(service.error) : '',
    record.state === 'unread' && record.error !== undefined ? checkStore : '',
  ];
  return {
    meaning: `Nothing can be concluded: ${unread.join(', and ')}.`,
    advice: [...checks, `Inspect it again when both can be read.${guess}`].filter((each) => each !== '').join(' '),
  };
}

const checkStore = 'Check that the store can be reached, and that it is the one of your app.';

function describeFault(error: unknown): string {
  return error === undefined ? 'was not read' : 'could not be read';
}

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
