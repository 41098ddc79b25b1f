// What a careful reader of a service's pages writes by hand: it verifies, knows an event by the name that the pages tell, refuses
// what it cannot book, and books each end of a payout once.
import { createHmac, verify } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { messageSignature } from 'transfer-callbacks';
import { expect } from 'vitest';
import { checkNamed, key, secrets } from './defined-support.js';
import { makeBooks, serveBodies, type Book } from './support.js';

type Status = 'SUCCESS' | 'FAILED' | 'REVERSED';

/** What a body tells of a payout, or the status of the response. */
type Found =
  { readonly name: unknown; readonly id: unknown; readonly status: Status; readonly amount: unknown } | number;

interface ByHand {
  readonly believes: (body: string, request: IncomingMessage) => boolean | Promise<boolean>;
  readonly read: (body: never, headers: IncomingHttpHeaders) => Found;
}

export const hmac = (algorithm: string, text: string, encoding: 'hex' | 'base64' = 'hex'): string =>
  createHmac(algorithm, key).update(text).digest(encoding);
const isSigned =
  (header: string, toRight: (body: string) => string): ByHand['believes'] =>
  (body, { headers }) =>
    headers[header] === toRight(body);
const hasToken: ByHand['believes'] = (_body, { url = '' }) => url.endsWith(`/${key}`);

/** Returns what `word` means: an outcome, nothing yet, or nothing that the reader knows. */
function toFound(
  states: Readonly<Record<string, Status | 'PENDING'>>,
  word: unknown,
  found: { readonly name: unknown; readonly id: unknown; readonly amount?: unknown },
): Found {
  const status = states[String(word)];
  if (status === undefined || found.id === undefined || found.id === null || found.id === '') return 400;
  return status === 'PENDING' ? 200 : { amount: undefined, ...found, status };
}

type Data = Readonly<Record<string, unknown>>;

/** By service. */
export const byHand: Readonly<Record<string, ByHand>> = {
  paystack: {
    believes: isSigned('x-paystack-signature', (body) => hmac('sha512', body)),
    read({ event, data }: { event: string; data: Data }) {
      if (!event.startsWith('transfer.')) return 200;
      const { id: merchant = 463_433 } = (data.integration ?? {}) as { id?: number };
      if (merchant !== 463_433) return 403;
      const states = {
        'transfer.success': 'SUCCESS',
        'transfer.failed': 'FAILED',
        'transfer.reversed': 'REVERSED',
      } as const;
      return toFound(states, event, { name: data.transfer_code, id: data.reference, amount: data.amount });
    },
  },
  flutterwave3: {
    believes: isSigned('verif-hash', () => key),
    read({ event, data }: { event: string; data: Data }) {
      if (!event.startsWith('transfer.')) return 200;
      const states = { SUCCESSFUL: 'SUCCESS', FAILED: 'FAILED', NEW: 'PENDING', PENDING: 'PENDING' } as const;
      const word = event === 'transfer.completed' ? data.status : event;
      return toFound(states, word, { name: data.id, id: data.reference, amount: data.amount });
    },
  },
  flutterwave4: {
    believes: isSigned('flutterwave-signature', (body) => hmac('sha256', body, 'base64')),
    read({ webhook_id: name, type, data }: { webhook_id: string; type: string; data: Data }) {
      if (!type.startsWith('transfer.')) return 200;
      const states = { SUCCESSFUL: 'SUCCESS', FAILED: 'FAILED', 'transfer.reversal': 'REVERSED' } as const;
      const word = type === 'transfer.disburse' ? data.status : type;
      return toFound(states, word, { name, id: data.reference, amount: data.amount });
    },
  },
  pawapay: {
    believes: (body, request) =>
      messageSignature({ publicKeys: secrets.PAWAPAY_PUBLIC_KEY, url: secrets.PAWAPAY_CALLBACK_URL })(
        request,
        undefined,
        Buffer.from(body),
      ),
    read({ payoutId: id, providerTransactionId: name = id, status, amount }: Data) {
      return toFound({ COMPLETED: 'SUCCESS', FAILED: 'FAILED', PROCESSING: 'PENDING' }, status, { name, id, amount });
    },
  },
  mtn: {
    believes: hasToken,
    read({ externalId: id, financialTransactionId: name = id, status, amount }: Data) {
      return toFound({ SUCCESSFUL: 'SUCCESS', FAILED: 'FAILED', PENDING: 'PENDING' }, status, { name, id, amount });
    },
  },
  korapay: {
    believes: isSigned('x-korapay-signature', (body) =>
      hmac('sha256', JSON.stringify((JSON.parse(body) as { data: unknown }).data)),
    ),
    read({ data: { reference: id, status, amount } }: { data: Data }) {
      return toFound({ success: 'SUCCESS', failed: 'FAILED', processing: 'PENDING' }, status, { name: id, id, amount });
    },
  },
  monnify: {
    believes: isSigned('monnify-signature', (body) => hmac('sha512', body)),
    read({ eventType, eventData: data }: { eventType: string; eventData: Data }) {
      if (!eventType.endsWith('_DISBURSEMENT')) return 200;
      const states = { SUCCESS: 'SUCCESS', FAILED: 'FAILED', REVERSED: 'REVERSED', PENDING: 'PENDING' } as const;
      return toFound(states, data.status, { name: data.transactionReference, id: data.reference, amount: data.amount });
    },
  },
  mpesa: {
    believes: hasToken,
    read({ Result }: { Result: Data & { ResultParameters?: { ResultParameter: { Value: unknown }[] } } }) {
      if (typeof Result.ResultCode !== 'number') return 400;
      const amount = Result.ResultParameters?.ResultParameter[0]?.Value;
      const found = { name: Result.TransactionID, id: Result.OriginatorConversationID, amount };
      return toFound({ paid: 'SUCCESS', failed: 'FAILED' }, Result.ResultCode === 0 ? 'paid' : 'failed', found);
    },
  },
  cinetpay: {
    believes: hasToken,
    read({ treatment_status: word, client_transaction_id: id, operator_transaction_id: name, amount }: Data) {
      const states = { VAL: 'SUCCESS', REJ: 'FAILED', NEW: 'PENDING', REC: 'PENDING', NOS: 'PENDING' } as const;
      return toFound(states, word, { name: name === '' ? id : name, id, amount });
    },
  },
  wise: {
    believes: (body, { headers }) => {
      const signature = Buffer.from(String(headers['x-signature-sha256']), 'base64');
      return verify('sha256', Buffer.from(body), secrets.WISE_PUBLIC_KEY, signature);
    },
    read({ event_type: event, data }: { event_type: string; data: { resource: Data; current_state: string } }) {
      if (!event.startsWith('transfers#')) return 200;
      const outcomes = { outgoing_payment_sent: 'SUCCESS', cancelled: 'FAILED', funds_refunded: 'REVERSED' } as const;
      const states = { ...outcomes, processing: 'PENDING', bounced_back: 'PENDING' } as const;
      const { id } = data.resource;
      return toFound(states, event === 'transfers#state-change' ? data.current_state : event, { name: id, id });
    },
  },
  razorpayx: {
    believes: isSigned('x-razorpay-signature', (body) => hmac('sha256', body)),
    read({ event, payload }: { event: string; payload: { payout: { entity: Data } } }, headers) {
      if (!event.startsWith('payout.')) return 200;
      const { reference_id: id, amount } = payload.payout.entity;
      if (id === null) return 200;
      const outcomes = {
        'payout.processed': 'SUCCESS',
        'payout.failed': 'FAILED',
        'payout.reversed': 'REVERSED',
      } as const;
      const states = { ...outcomes, 'payout.initiated': 'PENDING', 'payout.pending': 'PENDING' } as const;
      return toFound(states, event, { name: headers['x-razorpay-event-id'], id, amount });
    },
  },
};

/** How an endpoint by hand is not like a right one. */
export interface Ways {
  /** Whether it believes a request. */
  readonly believes?: (body: string, headers: IncomingHttpHeaders) => boolean;
  /** Returns the status for a body from which nothing is booked, or ends the response. */
  readonly before?: (body: string, response: ServerResponse) => number | undefined;
  /** What it books, and when. */
  readonly books?: (write: () => Promise<void>, status: Status, body: string) => Promise<void> | undefined;
  /** What it responds to a copy. */
  readonly toCopy?: number;
  /** Whose copies it does not know. */
  readonly forgets?: Status;
}

/** Serves an endpoint by hand. */
export function serveByHand(service: string, book: Book, ways: Ways = {}): Promise<string> {
  const { believes, read } = byHand[service] ?? expect.fail(service);
  const { before, books = (write: () => Promise<void>) => write(), toCopy = 200, forgets } = ways;
  const seen = new Map<string, { amount: unknown }>();
  const ends = new Map<string, { amount: unknown }>();
  function readSafely(body: string, headers: IncomingHttpHeaders): Found {
    try {
      const payload: unknown =
        service === 'cinetpay' ? Object.fromEntries(new URLSearchParams(body)) : JSON.parse(body);
      return read(payload as never, headers);
    } catch {
      return 400;
    }
  }
  return serveBodies(async (body, request, response) => {
    const isBelieved = ways.believes?.(body, request.headers) ?? (await believes(body, request));
    if (!isBelieved) {
      response.writeHead(401).end('bad signature');
      return undefined;
    }
    const early = before?.(body, response);
    if (early !== undefined || response.headersSent) return early;
    const found = readSafely(body, request.headers);
    if (typeof found === 'number') return found;
    const { name, id, status, amount } = found;
    const [event, end] = [`${String(name)} ${status}`, `${String(id)} ${status}`];
    const known = [seen.get(event), ends.get(end)].find((each) => each !== undefined);
    if (known !== undefined && status !== forgets) return known.amount === amount ? toCopy : 422;
    const [isPaid, isFailed, isReversed] = ['SUCCESS', 'FAILED', 'REVERSED'].map((each) =>
      ends.has(`${String(id)} ${each}`),
    );
    if ((status === 'SUCCESS' && isFailed) || (status === 'FAILED' && isPaid)) return 422;
    seen.set(event, found);
    ends.set(end, found);
    const isRefunded = status === 'REVERSED' ? isFailed : status === 'SUCCESS' && isReversed;
    if (isRefunded === true) return 200;
    try {
      await books(() => book({ data: { externalId: String(id), status } }), status, body);
    } catch (error) {
      seen.delete(event);
      ends.delete(end);
      throw error;
    }
    return 200;
  });
}

export const servePaystack = (book: Book, ways?: Ways) => serveByHand('paystack', book, ways);

/** Checks an endpoint of Paystack by hand, and counts what it books. */
export async function checkPaystack(ways: Ways, ...args: readonly string[]) {
  const { book, count } = await makeBooks();
  return checkNamed('paystack', await servePaystack(book, ways), [...args, ...count], { CALLBACK_SECRET: key });
}
