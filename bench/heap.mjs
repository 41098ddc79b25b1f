// Bytes of heap for each callback that `memoryStore()` remembers, received as in production: out of JSON.parse.
import { callbackText } from './callback.mjs';
import { packageUnderTest } from './package.mjs';

const { memoryStore, transferCallbackReceiver } = packageUnderTest;
const handler = () => undefined;

async function rememberCallbacks(count) {
  const store = memoryStore({ maxEntries: count });
  const receiver = transferCallbackReceiver({ store, onSuccess: handler, onFailed: handler });
  for (let i = 0; i < count; i += 1) {
    // Through a Buffer, as the edge reads it: a text that JavaScript put together would be kept alive by its slices.
    const bytes = Buffer.from(callbackText(crypto.randomUUID()));
    const { outcome } = await receiver.receive(JSON.parse(bytes.toString()));
    if (outcome !== 'processed') throw new Error(outcome);
  }
  return store;
}

function heapUsed() {
  globalThis.gc();
  return process.memoryUsage().heapUsed;
}

await rememberCallbacks(1_000);
const atFirst = heapUsed();
const small = await rememberCallbacks(100_000);
const withSmall = heapUsed();
const large = await rememberCallbacks(200_000);
const withBoth = heapUsed();
// The difference between the two stores: what does not grow with the number of callbacks cancels.
const bytes = (withBoth - withSmall - (withSmall - atFirst)) / 100_000;
console.log(`Node ${process.version}: ${bytes.toFixed(0)} bytes of heap per remembered callback`);
// Used after the measurement, so that neither was collected before it.
for (const { claim } of [small, large]) if (typeof claim !== 'function') throw new Error('Not a store.');
