// Where the time goes inside one process: each stage of a fresh callback alone, in nanoseconds, best of ten runs.
import { callbackText, path, secret } from './callback.mjs';
import { packageUnderTest } from './package.mjs';
import { schema } from './servers/schema.mjs';

const { memoryStore, transferCallbackReceiver, transferCallbackSchema, urlToken } = packageUnderTest;
const handler = () => undefined;
const turns = 20_000;

const ids = Array.from({ length: turns }, () => crypto.randomUUID());
let texts;
let callbacks;
function renew(run) {
  texts = ids.map((id) => Buffer.from(callbackText(`${id}${run}`)));
  callbacks = texts.map((bytes) => JSON.parse(bytes.toString()));
}

const store = memoryStore({ maxEntries: 1_000_000 });
const receiver = transferCallbackReceiver({ store, onSuccess: handler, onFailed: handler });
const verify = urlToken(secret);
const request = { token: 'a', fingerprint: '["SUCCESS",15000,"XAF","payout"]', leaseMs: 15_000, retentionMs: 100_000 };

const stages = {
  'JSON.parse': (i) => JSON.parse(texts[i].toString()),
  'schema of the package': (i) => transferCallbackSchema.safeParse(callbacks[i]),
  'schema by hand': (i) => schema.safeParse(callbacks[i]),
  urlToken: () => verify({ url: path }),
  'memory store: claim, settle': async (i) => {
    const claim = await store.claim(callbacks[i].data.id, request);
    await claim.lease.settle();
  },
  'receive, memory store': (i) => receiver.receive(callbacks[i], { source: 'http' }),
};

const best = {};
for (let run = 0; run < 10; run += 1) {
  for (const [name, stage] of Object.entries(stages)) {
    renew(`${name}${run}`);
    const startedAt = performance.now();
    for (let i = 0; i < turns; i += 1) {
      const result = stage(i);
      if (result instanceof Promise) await result;
    }
    const nanos = (1e6 * (performance.now() - startedAt)) / turns;
    best[name] = Math.min(best[name] ?? Infinity, nanos);
  }
}
console.log(`Node ${process.version}`);
for (const [name, nanos] of Object.entries(best)) console.log(name.padEnd(30), `${nanos.toFixed(0)} ns`.padStart(10));
