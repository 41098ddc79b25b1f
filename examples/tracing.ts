// Records deliveries as OpenTelemetry spans, below the span of their HTTP request and above the spans of the handler.
import type { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe, tracingChannel } from 'node:diagnostics_channel';
import { context, SpanKind, SpanStatusCode, trace, type Context, type Span } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { BasicTracerProvider, ConsoleSpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import express from 'express';
import { memoryStore, transferCallbackRouter } from 'transfer-callbacks';

const manager = new AsyncLocalStorageContextManager().enable();
context.setGlobalContextManager(manager);
const spanProcessors = [new SimpleSpanProcessor(new ConsoleSpanExporter())];
trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors }));
const tracer = trace.getTracer('payouts');

// OpenTelemetry has no public way to make a span active from a channel (open-telemetry/opentelemetry-js#6088).
const { _asyncLocalStorage: active } = manager as unknown as { _asyncLocalStorage: AsyncLocalStorage<Context> };
const spans = new WeakMap<object, Span>();

for (const name of ['receive', 'confirm', 'store', 'handle']) {
  const channel = `transfer-callbacks:${name}`;
  tracingChannel(channel).start.bindStore(active, (about) => {
    const { delivery, id, call } = about as { delivery: string; id?: string; call?: string };
    const attributes = { 'transfer_callbacks.delivery': delivery, ...(id && { 'transfer_callbacks.id': id }) };
    const span = tracer.startSpan(call === undefined ? channel : `${channel} ${call}`, { attributes });
    spans.set(about, span);
    return trace.setSpan(context.active(), span);
  });
  subscribe(`tracing:${channel}:error`, (about) => {
    spans.get(about as object)?.setStatus({ code: SpanStatusCode.ERROR });
  });
  subscribe(`tracing:${channel}:asyncEnd`, (about) => {
    spans.get(about as object)?.end();
  });
}

const app = express();

// In your app the HTTP instrumentation of OpenTelemetry does this.
app.use((request, response, next) => {
  tracer.startActiveSpan(`HTTP ${request.method}`, { kind: SpanKind.SERVER }, (span) => {
    response.once('close', () => {
      span.end();
    });
    next();
  });
});

app.post(
  '/callbacks/transfers',
  transferCallbackRouter({
    store: memoryStore(),
    onSuccess: () => {
      tracer.startActiveSpan('mark payout paid', (span) => {
        span.end();
      });
    },
    onFailed: () => {
      tracer.startActiveSpan('refund payout', (span) => {
        span.end();
      });
    },
    // The outcome is set on the active span: here on `receive`, or on the HTTP request's span if no channel is bound.
    onOutcome({ outcome, id, delivery }) {
      const attributes = { 'transfer_callbacks.outcome': outcome, 'transfer_callbacks.delivery': delivery };
      trace.getActiveSpan()?.setAttributes({ ...attributes, ...(id !== undefined && { 'transfer_callbacks.id': id }) });
    },
  }),
);

const port = Number(process.env.PORT ?? 3000);
app.listen(port, () => {
  console.log(`Callbacks are received at http://localhost:${port}/callbacks/transfers`);
});
