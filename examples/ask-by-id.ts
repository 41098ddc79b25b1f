import express, { type Router } from 'express';
import { reconcileTransfer } from 'transfer-callbacks/client';

type Receiver = Parameters<typeof reconcileTransfer>[0]['receiver'];

/** A route for a service whose event is only an id: `GET /?id=7`. Anybody may send one, so it asks for 8 at a time. */
export function askRoute(receiver: Receiver): Router {
  let running = 0;
  return express.Router().get('/', async ({ query: { id } }, response) => {
    if (typeof id !== 'string' || id === '') return void response.sendStatus(400);
    if (running === 8) return void response.sendStatus(503);
    running += 1;
    const { result } = await reconcileTransfer({ receiver, id }).finally(() => (running -= 1));
    response.sendStatus(result === 'processed' || result === 'duplicate' ? 200 : 503);
  });
}
