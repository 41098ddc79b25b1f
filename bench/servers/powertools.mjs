// A package for the same need, as its own documentation mounts it, behind the parser and the schema of the hand-written
// route. It takes no ioredis client, but the node-redis client that it documents.
import { CachePersistenceLayer } from '@aws-lambda-powertools/idempotency/cache';
import { IdempotencyConfig, makeIdempotent } from '@aws-lambda-powertools/idempotency';
import express from 'express';
import { path } from '../callback.mjs';
import { connectRedis, handle, schema, serve } from './serve.mjs';

const config = new IdempotencyConfig({ eventKeyJmesPath: 'id', throwOnNoIdempotencyKey: true });
// Made for Lambda: it takes the length of its lease from there, and says on every call that it has none otherwise.
config.registerLambdaContext({ getRemainingTimeInMillis: () => 15_000 });
const handleOnce = makeIdempotent(handle, {
  persistenceStore: new CachePersistenceLayer({ client: await connectRedis('node-redis') }),
  config,
  dataIndexArgument: 0,
});

const app = express();
app.use(express.json());
app.post(path, async (request, response) => {
  await handleOnce(schema.parse(request.body).data);
  response.sendStatus(200);
});
// Express takes an error handler by its four parameters.
app.use((error, _request, response, _next) => {
  response.sendStatus(error.name === 'IdempotencyAlreadyInProgressError' ? 409 : 500);
});
serve(app);
