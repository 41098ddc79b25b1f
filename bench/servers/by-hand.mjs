// The route that a merchant writes without the package. Neither checks who is calling.
import express from 'express';
import { path } from '../callback.mjs';
import { connectRedis, handle, schema, serve } from './serve.mjs';

const [, , kind, client] = process.argv;
const redis = await connectRedis(client);
const nodeRedis = client === 'node-redis';
const leaseMs = 15_000;
const retentionMs = 604_800_000;

const setIfAbsent = (key, ms) =>
  nodeRedis ? redis.set(key, 'claimed', { PX: ms, NX: true }) : redis.set(key, 'claimed', 'PX', ms, 'NX');
const set = (key, ms) => (nodeRedis ? redis.set(key, 'done', { PX: ms }) : redis.set(key, 'done', 'PX', ms));

const app = express();
app.use(express.json());
app.post(path, kind === 'unsafe' ? unsafe : safe);
// Express takes an error handler by its four parameters.
app.use((_error, _request, response, _next) => {
  response.sendStatus(500);
});
serve(app);

/** One `SET NX` and nothing after: a crash or a failure in the handler loses the callback for good. */
async function unsafe(request, response) {
  const { data } = schema.parse(request.body);
  if ((await setIfAbsent(`callback:${data.id}`, retentionMs)) !== null) await handle(data);
  response.sendStatus(200);
}

/** The least that loses nothing: a claim that lapses, and a record once the handler has succeeded. */
async function safe(request, response) {
  const parsed = schema.safeParse(request.body);
  if (!parsed.success) {
    response.sendStatus(400);
    return;
  }
  const { data } = parsed.data;
  const key = `callback:${data.id}`;
  if ((await setIfAbsent(key, leaseMs)) === null) {
    response.sendStatus((await redis.get(key)) === 'done' ? 200 : 409);
    return;
  }
  try {
    await handle(data);
  } catch {
    await redis.del(key);
    response.sendStatus(500);
    return;
  }
  await set(key, retentionMs);
  response.sendStatus(200);
}
