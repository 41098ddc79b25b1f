import { randomBytes } from 'node:crypto';
import express from 'express';
import {
  headerToken,
  ipAllowList,
  memoryStore,
  transferCallbackReceiver,
  transferCallbackRouter,
  transferToken,
  urlToken,
} from 'transfer-callbacks';
import { payouts } from './payouts.js';

// To replace a secret, set the new one here and keep the old one as `…_PREVIOUS` until the last transfer that was
// created with it is final. In this demonstration a missing secret is random and lasts as long as the process. In
// production, leave `randomBytes` out: making a verifier without its secret throws.
function secretFromEnv(name: string): (string | undefined)[] {
  return [process.env[name] ?? randomBytes(32).toString('base64url'), process.env[`${name}_PREVIOUS`]];
}

const receiver = transferCallbackReceiver({
  store: memoryStore(),
  async onSuccess({ data }) {
    await payouts.markPaid(data.externalId, data.amount);
  },
  async onFailed({ data }) {
    await payouts.refund(data.externalId, data.failureReason);
  },
});

const app = express();
// Trust only your own proxies: otherwise a sender could claim any address.
app.set('trust proxy', 'loopback');

// Each transfer has its own URL: with a leaked one nobody can forge the callback of another transfer.
const perTransfer = transferToken(secretFromEnv('TRANSFER_SECRET'));
app.post('/callbacks/transfers/:token', transferCallbackRouter({ receiver, verify: perTransfer }));

// All transfers share one secret URL.
app.post(
  '/callbacks/shared/:token',
  transferCallbackRouter({ receiver, verify: urlToken(secretFromEnv('URL_SECRET')) }),
);

// Behind a gateway that adds a header, both verifiers must accept.
const fromGateway = [
  ipAllowList(['127.0.0.1', '::1']),
  headerToken('x-gateway-token', secretFromEnv('GATEWAY_SECRET')),
];
app.post('/callbacks/gateway', transferCallbackRouter({ receiver, verify: fromGateway }));

const port = Number(process.env.PORT ?? 3000);
app.listen(port, (error) => {
  if (error) throw error;
  const callbackUrl = perTransfer.urlFor(`http://localhost:${port}/callbacks/transfers`, 'payout-1');
  console.log(`Create the transfer payout-1 with callbackUrl ${callbackUrl}`);
});
