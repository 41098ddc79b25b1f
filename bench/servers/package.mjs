// The package as a user mounts it: every check on, every option the default.
import express from 'express';
import { packageUnderTest, secret } from '../callback.mjs';
import { connectRedis, handle, isTold, serve } from './serve.mjs';

const [, , edge, client] = process.argv;
const { memoryStore, redisStore, transferCallbackListener, transferCallbackRouter, urlToken } = packageUnderTest;

const options = {
  store: client === undefined ? memoryStore() : redisStore(await connectRedis(client)),
  verify: urlToken(secret),
  onSuccess: ({ data }) => handle(data),
  onFailed: ({ data }) => handle(data),
  // The situations of guarantees.mjs are failures, and each of them would be logged.
  ...(isTold && { logger: false }),
};

if (edge === 'router') {
  const app = express();
  app.use('/callbacks/transfers', transferCallbackRouter(options));
  serve(app);
} else {
  serve(transferCallbackListener(options));
}
