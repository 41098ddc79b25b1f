// The package in layers, from the least that a listener can do to what `transferCallbackListener` does. The difference
// of two layers is the cost of what the second one adds.
import express, { Router } from 'express';
import { packageUnderTest } from '../package.mjs';
import { serve } from './serve.mjs';

const [, , kind] = process.argv;
const { memoryStore, transferCallbackReceiver, transferCallbackSchema } = packageUnderTest;

async function handle() {}

const remembered = new Map();
const store = memoryStore();
const receiver = transferCallbackReceiver({ store, onSuccess: handle, onFailed: handle });

/** What is done with a callback that was read. Each resolves with whether to acknowledge it. */
const layers = {
  async map(callback) {
    const parsed = transferCallbackSchema.safeParse(callback);
    if (!parsed.success || remembered.has(parsed.data.data.id)) return parsed.success;
    remembered.set(parsed.data.data.id, 'claimed');
    await handle(parsed.data);
    remembered.set(parsed.data.data.id, 'settled');
    return true;
  },
  async store(callback) {
    const parsed = transferCallbackSchema.safeParse(callback);
    if (!parsed.success) return false;
    const { id, status, amount, currency, externalId } = parsed.data.data;
    const claim = await store.claim(id, {
      token: crypto.randomUUID(),
      fingerprint: JSON.stringify([status, amount, currency, externalId]),
      leaseMs: 15_000,
      retentionMs: 604_800_000,
    });
    if (claim.state !== 'claimed') return claim.state === 'settled';
    await handle(parsed.data);
    await claim.lease.settle();
    return true;
  },
  async receive(callback) {
    const { outcome } = await receiver.receive(callback);
    return outcome === 'processed' || outcome === 'duplicate';
  },
};

const layer = layers[kind === 'express-map' ? 'map' : kind];

function listen(request, response) {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', async () => {
    const acknowledged = await layer(JSON.parse(Buffer.concat(chunks).toString()));
    response
      .writeHead(acknowledged ? 200 : 500, { 'Content-Type': 'text/plain', 'Content-Length': 2 })
      .end(acknowledged ? 'OK' : 'no');
  });
}

serve(kind === 'express-map' ? express().use('/callbacks/transfers', Router().use(listen)) : listen);
