import { createRequire } from 'node:module';
import express from 'express';
import { memoryStore, TransferCallbackError, transferCallbackRouter } from 'transfer-callbacks';
import { storeContract, transferFailed, transferSucceeded } from 'transfer-callbacks/testing';

const require = createRequire(import.meta.url);
const manifest = require('transfer-callbacks/package.json');
// A library of the app's may be CommonJS: what it throws is of the other copy of the class.
const { RetryLater } = require('transfer-callbacks');

const seen = [];
const store = memoryStore();
const app = express();
app.use(
  '/callbacks',
  transferCallbackRouter({
    store,
    logger: false,
    onSuccess: ({ event, data }) => seen.push([event, data.externalId]),
    onFailed() {
      throw new RetryLater('Not now.', { retryAfterMs: 7_000 });
    },
  }),
);

const server = app.listen(0, '127.0.0.1', async () => {
  const success = transferSucceeded({ externalId: 'payout-1' });
  const responses = [];
  for (const callback of [success, success, transferFailed(), {}]) {
    const response = await fetch(`http://127.0.0.1:${server.address().port}/callbacks`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', connection: 'close' },
      body: JSON.stringify(callback),
    });
    const { outcome, error } = await response.json();
    responses.push([response.status, outcome ?? error, response.headers.get('retry-after')]);
  }
  await storeContract[0].check(store);
  console.log(
    JSON.stringify({
      express: require('express/package.json').version,
      manifest: manifest.name,
      responses,
      seen,
      ownError: new RetryLater() instanceof TransferCallbackError,
    }),
  );
  server.close();
});
