// The program of every project: compiled as an ES module, and as CommonJS.
import type { AddressInfo } from 'node:net';
import express, { type Request } from 'express';
import {
  memoryStore,
  RetryLater,
  TransferCallbackError,
  transferCallbackRouter,
  type TransferCallbackOutcome,
  type Verifier,
} from 'transfer-callbacks';
import { storeContract, transferFailed, transferSucceeded } from 'transfer-callbacks/testing';

const seen: [string, string][] = [];
const outcomes: TransferCallbackOutcome['outcome'][] = [];
const store = memoryStore();
// A verifier of the app's own sees Express's request, as the project's own types for Express have it.
const sameHost: Verifier<unknown, Request> = (request) => request.hostname === '127.0.0.1';

const app = express();
app.post(
  '/callbacks',
  transferCallbackRouter({
    store,
    logger: false,
    verify: sameHost,
    onOutcome: ({ outcome }) => outcomes.push(outcome),
    async onSuccess({ event, data }) {
      const nothing: null = data.failureReason;
      const account: object | null = data.paymentMethod === 'bank' ? data.bankAccount : nothing;
      seen.push([event, account === null ? data.externalId : 'a bank payout']);
    },
    onFailed({ data }, { signal }) {
      const reason: string | null = data.failureReason;
      signal.throwIfAborted();
      throw new RetryLater(reason ?? 'Not now.', { retryAfterMs: 7_000 });
    },
  }),
);

const server = app.listen(0, '127.0.0.1', async () => {
  const success = transferSucceeded({ externalId: 'payout-1' });
  const responses: unknown[] = [];
  for (const callback of [success, success, transferFailed(), {}]) {
    const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/callbacks`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', connection: 'close' },
      body: JSON.stringify(callback),
    });
    const { outcome, error } = (await response.json()) as { outcome?: string; error?: boolean };
    responses.push([response.status, outcome ?? error, response.headers.get('retry-after')]);
  }
  await storeContract[0]?.check(store);
  const { default: expressManifest } = await import('express/package.json', { with: { type: 'json' } });
  const { default: manifest } = await import('transfer-callbacks/package.json', { with: { type: 'json' } });
  console.log(
    JSON.stringify({
      express: expressManifest.version,
      manifest: manifest.name,
      responses,
      seen,
      outcomes,
      ownError: new RetryLater() instanceof TransferCallbackError,
    }),
  );
  server.close();
});
