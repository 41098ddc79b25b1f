// Fills one memory store, and measures a window of callbacks at each size. Started with --expose-gc.
import { callbackText } from '../callback.mjs';
import { packageUnderTest } from '../package.mjs';
import { percentile } from '../support/statistics.mjs';

const { memoryStore, transferCallbackReceiver } = packageUnderTest;
const handler = () => undefined;
const window = 10_000;
const callsMs = new Float64Array(4 * window);
let calls = 0;

/** A store whose calls are timed, in `callsMs`, while a window is measured. */
function timed(store) {
  const time = (call) => {
    const startedAt = performance.now();
    const result = call();
    callsMs[calls % callsMs.length] = performance.now() - startedAt;
    calls += 1;
    return result;
  };
  return {
    ...store,
    claim: async (key, request) => {
      const claim = await time(() => store.claim(key, request));
      if (claim.state !== 'claimed') return claim;
      const { lease } = claim;
      return { ...claim, lease: { ...lease, settle: () => time(() => lease.settle()) } };
    },
  };
}

const receivers = (store) => ({
  fill: transferCallbackReceiver({ store, onSuccess: handler, onFailed: handler }),
  measure: transferCallbackReceiver({ store: timed(store), onSuccess: handler, onFailed: handler }),
});

async function receive(receiver, count) {
  for (let i = 0; i < count; i += 1) {
    // Through a Buffer, as it is read from a request: a text that JavaScript put together would be kept by its slices.
    const bytes = Buffer.from(callbackText(crypto.randomUUID()));
    const { outcome } = await receiver.receive(JSON.parse(bytes.toString()));
    if (outcome !== 'processed') throw new Error(outcome);
  }
}

function heapUsed() {
  globalThis.gc();
  return process.memoryUsage().heapUsed;
}

process.on('message', async ({ sizes }) => {
  const last = sizes.at(-1);
  // One window fits on top of the last size; what follows evicts.
  const store = memoryStore({ maxEntries: last + window });
  const { fill, measure } = receivers(store);
  await receive(receivers(memoryStore()).measure, 3 * window);
  const empty = heapUsed();
  const rows = [];
  let remembered = 0;
  for (const size of [...sizes, 'full']) {
    const target = size === 'full' ? last + 2 * window : size;
    await receive(fill, Math.max(0, target - remembered));
    remembered = Math.max(target, remembered);
    const heap = heapUsed() - empty;
    calls = 0;
    const before = process.cpuUsage();
    await receive(measure, window);
    const { user, system } = process.cpuUsage(before);
    remembered += window;
    const longest = callsMs.subarray(0, Math.min(calls, callsMs.length));
    rows.push({
      size,
      cpuMicros: (user + system) / window,
      bytesPerId: heap / (size === 'full' ? last + window : size),
      p999Ms: percentile(longest, 0.999),
      longestMs: longest.reduce((most, ms) => Math.max(most, ms), 0),
    });
  }
  process.send(rows);
});
process.send('ready');
