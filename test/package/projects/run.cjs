// What the JavaScript projects do with the package, however they have loaded it.
const manifest = require('transfer-callbacks/package.json');
const { version } = require('express/package.json');

exports.run = function run({ root, testing, RetryLater, app }) {
  const seen = [];
  const store = root.memoryStore();
  const router = root.transferCallbackRouter({
    store,
    logger: false,
    onSuccess: ({ event, data }) => seen.push([event, data.externalId]),
    onFailed() {
      throw new RetryLater('Not now.', { retryAfterMs: 7_000 });
    },
  });
  const server = app(router).listen(0, '127.0.0.1', async () => {
    const success = testing.transferSucceeded({ externalId: 'payout-1' });
    const responses = [];
    for (const callback of [success, success, testing.transferFailed(), {}]) {
      const response = await fetch(`http://127.0.0.1:${server.address().port}/callbacks`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', connection: 'close' },
        body: JSON.stringify(callback),
      });
      const { outcome, error } = await response.json();
      responses.push([response.status, outcome ?? error, response.headers.get('retry-after')]);
    }
    await testing.storeContract[0].check(store);
    const ownError = new RetryLater() instanceof root.TransferCallbackError;
    console.log(JSON.stringify({ express: version, manifest: manifest.name, responses, seen, ownError }));
    server.close();
  });
};
