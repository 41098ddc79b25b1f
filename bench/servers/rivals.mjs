// Packages for the same need, each as its own documentation mounts it, behind the parser and the schema of the
// hand-written route. None takes an ioredis client: each is given the node-redis client that it documents.
import { CachePersistenceLayer } from '@aws-lambda-powertools/idempotency/cache';
import { IdempotencyConfig, makeIdempotent } from '@aws-lambda-powertools/idempotency';
import { Idempotency } from '@node-idempotency/core';
import { RedisStorageAdapter } from '@node-idempotency/storage-adapter-redis';
import express from 'express';
import expressIdempotency from 'express-idempotency';
import redisAdapter from 'express-idempotency-redis-adapter';
import { path } from '../callback.mjs';
import { schema } from './schema.mjs';
import { connectRedis, serve } from './serve.mjs';

const [, , rival] = process.argv;
const url = `redis://127.0.0.1:${process.env.REDIS_PORT}`;

async function handle() {}

function validate(request, _response, next) {
  request.callback = schema.parse(request.body);
  next();
}

const app = express();
app.use(express.json(), validate);

if (rival === 'powertools') {
  const config = new IdempotencyConfig({ eventKeyJmesPath: 'id', throwOnNoIdempotencyKey: true });
  // Made for Lambda: it takes the length of its lease from there, and says on every call that it has none otherwise.
  config.registerLambdaContext({ getRemainingTimeInMillis: () => 15_000 });
  const handleOnce = makeIdempotent(handle, {
    persistenceStore: new CachePersistenceLayer({ client: await connectRedis('node-redis') }),
    config,
    dataIndexArgument: 0,
  });
  app.post(path, async (request, response) => {
    await handleOnce(request.callback.data);
    response.sendStatus(200);
  });
}

if (rival === 'express-idempotency') {
  const dataAdapter = new redisAdapter.default({ connectionConfig: { url } });
  await dataAdapter.connect();
  app.use((request, _response, next) => {
    request.headers['idempotency-key'] = request.callback.data.id;
    next();
  });
  app.post(path, expressIdempotency.idempotency({ dataAdapter }), async (request, response) => {
    if (expressIdempotency.getSharedIdempotencyService().isHit(request)) return;
    await handle(request.callback);
    response.sendStatus(200);
  });
}

if (rival === 'node-idempotency') {
  const storage = new RedisStorageAdapter({ url });
  await storage.connect();
  const idempotency = new Idempotency(storage);
  app.post(path, async ({ callback }, response) => {
    const keyed = { method: 'POST', path, headers: { 'idempotency-key': callback.data.id }, body: callback };
    if ((await idempotency.onRequest(keyed)) === undefined) {
      await handle(callback);
      await idempotency.onResponse(keyed, { body: 'OK', additional: { status: 200 } });
    }
    response.sendStatus(200);
  });
}

serve(app);
