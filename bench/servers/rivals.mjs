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
import { handle } from './handler.mjs';
import { schema } from './schema.mjs';
import { connectRedis, serve } from './serve.mjs';

const [, , rival] = process.argv;
const url = `redis://127.0.0.1:${process.env.REDIS_PORT}`;

/** What their own errors mean on the wire. A status that they have set themselves is kept. */
const statuses = {
  IdempotencyAlreadyInProgressError: 409,
  IdempotencyValidationError: 422,
  REQUEST_IN_PROGRESS: 409,
  IDEMPOTENCY_FINGERPRINT_MISSMATCH: 422,
};

const mounts = {
  async powertools(app) {
    mountPowertools(app, await connectRedis('node-redis'), undefined);
  },

  async 'powertools-validating'(app) {
    mountPowertools(app, await connectRedis('node-redis'), '[status, amount, currency, externalId]');
  },

  async 'express-idempotency'(app) {
    const dataAdapter = new redisAdapter.default({ connectionConfig: { url } });
    await dataAdapter.connect();
    app.use((request, _response, next) => {
      request.headers['idempotency-key'] = request.callback.data.id;
      next();
    });
    app.post(path, expressIdempotency.idempotency({ dataAdapter }), async (request, response) => {
      const service = expressIdempotency.getSharedIdempotencyService();
      if (service.isHit(request)) return;
      try {
        await handle(request.callback.data);
      } catch (error) {
        await service.reportError(request);
        throw error;
      }
      response.sendStatus(200);
    });
  },

  async 'node-idempotency'(app) {
    const storage = new RedisStorageAdapter({ url });
    await storage.connect();
    const idempotency = new Idempotency(storage);
    app.post(path, async ({ callback }, response) => {
      const keyed = { method: 'POST', path, headers: { 'idempotency-key': callback.data.id }, body: callback };
      const before = await idempotency.onRequest(keyed);
      if (before !== undefined) {
        response.sendStatus(before.additional.status);
        return;
      }
      try {
        await handle(callback.data);
      } catch (error) {
        // Its documentation hands over the error as the response of the request.
        await idempotency.onResponse(keyed, { error: error.message, additional: { status: 500 } });
        throw error;
      }
      await idempotency.onResponse(keyed, { body: 'OK', additional: { status: 200 } });
      response.sendStatus(200);
    });
  },
};

function mountPowertools(app, client, payloadValidationJmesPath) {
  const config = new IdempotencyConfig({
    eventKeyJmesPath: 'id',
    payloadValidationJmesPath,
    throwOnNoIdempotencyKey: true,
  });
  // Made for Lambda: it takes the length of its lease from there, and says on every call that it has none otherwise.
  config.registerLambdaContext({ getRemainingTimeInMillis: () => 15_000 });
  const handleOnce = makeIdempotent(handle, {
    persistenceStore: new CachePersistenceLayer({ client }),
    config,
    dataIndexArgument: 0,
  });
  app.post(path, async (request, response) => {
    await handleOnce(request.callback.data);
    response.sendStatus(200);
  });
}

const app = express();
app.use(express.json(), (request, _response, next) => {
  request.callback = schema.parse(request.body);
  next();
});
await mounts[rival](app);
// Express takes an error handler by its four parameters.
app.use((error, _request, response, _next) => {
  const ownStatus = response.statusCode >= 400 ? response.statusCode : 500;
  response.sendStatus(statuses[error.code] ?? statuses[error.name] ?? ownStatus);
});
serve(app);
