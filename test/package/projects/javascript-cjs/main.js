const express = require('express');
const { memoryStore, RetryLater, TransferCallbackError, transferCallbackRouter } = require('transfer-callbacks');
const { storeContract, transferFailed, transferSucceeded } = require('transfer-callbacks/testing');
const manifest = require('transfer-callbacks/package.json');

const seen = [];
const store = memoryStore();
const app = express();
app.use(express.json());
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
