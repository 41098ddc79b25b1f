import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { inspect } from 'node:util';
import { expect } from 'vitest';
import {
  reconcileTransfers,
  transferService,
  TransferClientError,
  type PendingTransfer,
  type Transaction,
  type TransferService,
} from 'transfer-callbacks/client';
import type { TransferCallback } from 'transfer-callbacks';
import { transferSucceeded } from 'transfer-callbacks/testing';
import { later, receiverOf } from '../core/support.js';
import { serveForTest } from '../support/servers/serve-for-test.js';
import { toAsk, type TransferServiceOptions } from '../../src/client/service/transfer.js';
import { withAsk } from '../../src/client/confirm.js';
import { seemsFinal } from '../../src/client/open-status.js';
import { documentedService } from '../../src/core/documented.js';
import type { PayoutService } from '../../src/core/payout-service.js';

export const credentials = { apiKey: 'key-1', apiSecret: 'a-secret-that-must-not-be-seen' };

/** A transfer to create. The client takes any field, and knows two of these. */
export const request = {
  callbackUrl: 'https://merchant.example/callbacks',
  externalId: 'payout-1',
  amount: 5,
  extra: [{}],
};

/** The same transfer, as the service responds with it. */
export const { data: transaction } = transferSucceeded({ id: 'tr-1', externalId: 'payout-1' });

interface Received {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** How a service of a test responds: a status and a body, or anything else that it does with the response. */
export type Reply =
  readonly [status: number, body: unknown, headers?: Record<string, string>] | ((response: ServerResponse) => void);

interface Service {
  readonly baseUrl: string;
  readonly received: Received[];
  readonly client: TransferService;
}

/** A reply of a service that breaks the connection. */
export const hangUp: Reply = (response) => response.destroy();

/**
 * Starts a service for one test. It responds with `replies` in turn, the last one again and again, or with what the
 * function returns for a request.
 */
export async function startService(
  replies: readonly Reply[] | ((received: Received) => Reply),
  options: Partial<TransferServiceOptions> = {},
): Promise<Service> {
  const received: Received[] = [];

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method, url, headers } = request;
    const body = ((await request.setEncoding('utf8').toArray()) as string[]).join('');
    received.push({ method, url, headers, body });
    const last = { method, url, headers, body };
    const reply =
      typeof replies === 'function'
        ? replies(last)
        : (replies[Math.min(received.length, replies.length) - 1] ?? [500, '']);
    if (typeof reply === 'function') {
      reply(response);
      return;
    }
    const [status, content, extra = {}] = reply;
    response
      .writeHead(status, { 'Content-Type': 'application/json', ...extra })
      .end(typeof content === 'string' ? content : JSON.stringify(content));
  }

  const url = await serveForTest((request, response) => void respond(request, response));
  return { baseUrl: url, received, client: transferService({ baseUrl: url, ...credentials, ...options }) };
}

/** The same, for queries: `reply` gets the id that is asked for. */
export function startQueries(
  reply: (id: string) => Reply,
  options: Partial<TransferServiceOptions> = {},
): Promise<Service> {
  return startService(({ url = '' }) => reply(decodeURIComponent(url.slice('/transactions/'.length))), options);
}

/** A reply with the transfer of this id, which has succeeded. */
export const final = (id: string): Reply => [200, { data: transferSucceeded({ id }).data }];

/** A service that knows these transactions by either id, and responds with 404 to the others. */
export function startKnowing(...known: Transaction[]): Promise<Service> {
  return startQueries((id) => {
    const found = known.find((each) => [each.id, each.externalId].includes(id));
    return found === undefined ? refusal(404, 'Unknown') : [200, { data: found }];
  });
}

const hourMs = 3_600_000;

/** A pending transfer that a run reads: the callback of a younger one may still come. */
export const old = (id: string): PendingTransfer => ({ id, createdAt: new Date(Date.now() - hourMs) });

/** So many of these, `tr-0` first. Their time is a number and not a Date: a run takes both. */
export const transfers = (count: number): PendingTransfer[] =>
  Array.from({ length: count }, (_, index) => ({ id: `tr-${index}`, createdAt: Date.now() - hourMs }));

/** The transfers of these callbacks. */
export const oneOf = (...callbacks: TransferCallback[]): PendingTransfer[] =>
  callbacks.map(({ data }) => old(data.externalId));

/** The report of a run that has read nothing. */
export const emptyReport = {
  ...{ processed: 0, duplicate: 0, pending: 0, unknown: 0, failed: 0 },
  ...{ problems: [], stopped: undefined },
};

/** The error that a call of the client rejects with. No part of it shows the secret. */
export async function catchError(call: Promise<unknown>): Promise<TransferClientError> {
  const error = await call.then(
    () => expect.fail('it did not reject'),
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(TransferClientError);
  expect(inspect(error, { depth: null, showHidden: true })).not.toContain(credentials.apiSecret);
  return error as TransferClientError;
}

/** The documented service, with a query of a test. It may resolve with anything. */
export function serviceOf({ getTransaction }: { getTransaction: (id: string, options: Signalled) => unknown }) {
  const ask = toAsk({ getTransaction: getTransaction as TransferService['getTransaction'] });
  return { ...withAsk(documentedService, ask), seemsFinal };
}

interface Signalled {
  readonly signal: AbortSignal;
}

type RunOptions = Omit<Parameters<typeof reconcileTransfers>[0], 'receiver'>;

/** Makes a run with a receiver of this service on a memory store, whose handlers do nothing. */
export const reconcile = (service: PayoutService<TransferCallback>, options: RunOptions) =>
  reconcileTransfers({ receiver: receiverOf({ service }), ...options });

/** A client whose queries wait for `openAll`. `read` are the ids, in the order of the queries. */
export function gatedClient() {
  const gate = later();
  const read: string[] = [];
  return {
    read,
    async getTransaction(id: string): Promise<Transaction> {
      read.push(id);
      await gate.promise;
      return { ...transferSucceeded({ id }).data };
    },
    openAll: gate.resolve,
  };
}

/** A refusal in the documented shape (service §2.3). */
export function refusal(statusCode: number, message: string): Reply {
  return [statusCode, { error: true, statusCode, message, data: null }];
}
