import express, { type Router } from 'express';

interface Receiver {
  receive(item: unknown, options: { source: string; verify: () => boolean }): Promise<{ outcome: string }>;
}
const acknowledged = new Set(['processed', 'duplicate', 'ignored']);

/** A route for a service that sends several payouts in one body, such as `{"items":[…]}`, and signs each of them. */
export function batchRoute(receiver: Receiver, isSigned: (item: unknown) => boolean): Router {
  return express.Router().post('/', express.json({ limit: '1mb' }), async (request, response) => {
    const { items } = (request.body ?? {}) as { items?: unknown };
    if (!Array.isArray(items) || items.length === 0) return void response.sendStatus(400);
    const outcomes: string[] = [];
    for (const item of items as unknown[]) {
      const { outcome } = await receiver.receive(item, { source: 'http', verify: () => isSigned(item) });
      outcomes.push(outcome);
    }
    // Not 400: the service may turn the webhook off, although the other payouts were handled.
    response.sendStatus(outcomes.every((outcome) => acknowledged.has(outcome)) ? 200 : 503);
  });
}
