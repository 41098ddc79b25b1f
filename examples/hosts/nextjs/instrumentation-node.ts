import { Counter, Gauge, Histogram, register } from 'prom-client';
import { prometheusMetrics } from 'transfer-callbacks/metrics';
import { pool, receiver, store } from './lib/payouts';

prometheusMetrics({ Counter, Gauge, Histogram, registers: [register] });
await store.migrate();
const probe = await receiver.check();
if (!probe.ok) throw probe.error;
process.once('SIGTERM', () => {
  void receiver.close({ timeoutMs: 25_000 }).then(() => pool.end());
});
