export { openTelemetryMetrics } from './open-telemetry.js';
export { prometheusMetrics } from './prometheus.js';
