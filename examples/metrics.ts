import express from 'express';
import { Counter, Gauge, Histogram, register } from 'prom-client';
import { memoryStore, transferCallbackRouter } from 'transfer-callbacks';
import { prometheusMetrics } from 'transfer-callbacks/metrics';
import { payouts } from './payouts.js';

// One call at startup covers every receiver and every reconciliation run of the process.
// With OpenTelemetry it is `openTelemetryMetrics(metrics.getMeter('transfer-callbacks'))`.
prometheusMetrics({ Counter, Gauge, Histogram, registers: [register] });

const app = express();
app.post(
  '/callbacks/transfers',
  transferCallbackRouter({
    store: memoryStore(), // In production a shared one: redisStore(client).
    onSuccess: ({ data }) => payouts.markPaid(data.externalId, data.amount),
    onFailed: ({ data }) => payouts.refund(data.externalId, data.failureReason),
  }),
);

// In production, serve the metrics on another port, which the internet cannot reach.
app.get('/metrics', async (_request, response) => {
  response.setHeader('Content-Type', register.contentType);
  response.end(await register.metrics());
});

const port = Number(process.env.PORT ?? 3000);
app.listen(port, (error) => {
  if (error) throw error;
  console.log(`Callbacks at http://localhost:${port}/callbacks/transfers, metrics at http://localhost:${port}/metrics`);
});
