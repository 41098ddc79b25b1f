import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { memoryStore, transferCallbackRouter } from 'transfer-callbacks';
import { transferSandbox } from 'transfer-sandbox';

const app = express();
app.post(
  '/callbacks/transfers',
  transferCallbackRouter({
    store: memoryStore(),
    onSuccess({ data }) {
      console.log(`Paid ${data.amount} ${data.currency} for ${data.externalId}`);
    },
    onFailed({ data }) {
      console.log(`Failed ${data.externalId}: ${String(data.failureReason)}`);
    },
  }),
);
const server = app.listen(0, '127.0.0.1');
await once(server, 'listening');
const { port } = server.address() as AddressInfo;

// Simulates the service on this machine, a thousand times faster: a retry after 30 s takes 30 ms.
const sandbox = await transferSandbox({ speed: 1_000 });
const { apiKey, apiSecret } = sandbox.keys.valid;

await fetch(`${sandbox.baseUrl}/transactions/transfer`, {
  method: 'POST',
  headers: { 'Content-Type': 'application/json', 'x-api-key': apiKey, 'x-api-secret': apiSecret },
  body: JSON.stringify({
    externalId: 'lost-attempts-42', // The prefix selects the scenario.
    callbackUrl: `http://127.0.0.1:${port}/callbacks/transfers`,
  }),
});
await sandbox.idle();
for (const { number, response, reason } of sandbox.attempts) {
  console.log(`Attempt ${number}:`, 'status' in response ? response.status : response.error, reason ?? '');
}

await sandbox.close();
server.close();
