import { reconciliation } from '../core/delivery.js';
import { outcomes } from '../core/outcomes.js';

export type Labels = Readonly<Record<string, string>>;

interface Named {
  /** The name by the rules of Prometheus: with the unit, and with `_total` for a counter. */
  readonly prometheus: string;
  /** The name in OpenTelemetry, which OpenTelemetry's rules translate into the Prometheus name. */
  readonly openTelemetry: string;
  readonly unit: string;
  readonly help: string;
  readonly labels: readonly ('outcome' | 'event' | 'source' | 'result')[];
}

export interface CounterMetric extends Named {
  readonly kind: 'counter';
  /** The series that start at 0. Otherwise `increase()` misses the first event of a series. */
  readonly zeros: readonly Labels[];
}

export interface HistogramMetric extends Named {
  readonly kind: 'histogram';
  readonly buckets: readonly number[];
  readonly zeros: readonly Labels[];
}

export interface GaugeMetric extends Named {
  readonly kind: 'gauge';
  /** Which value to keep if several processes report one. */
  readonly aggregator: 'max' | 'min';
}

export type Metric = CounterMetric | HistogramMetric | GaugeMetric;

/** What needs no handler, or was refused before its kind was known, is of kind `none`. */
const withoutKind = ['ignored', 'invalid', 'unauthorized'];
const outcomeLabels = Object.keys(outcomes).flatMap((outcome) =>
  (withoutKind.includes(outcome) ? ['none'] : ['transfer', 'other']).map((event) => ({ outcome, event })),
);
const sourceLabels = [{ source: 'http' }, { source: reconciliation }];

/** The results that a reconciliation run reports per transfer. */
export const results = ['processed', 'duplicate', 'unchanged', 'pending', 'unknown', 'failed'] as const;

/** Every metric of this package. */
export const metrics = {
  deliveries: {
    kind: 'counter',
    prometheus: 'transfer_callbacks_deliveries_total',
    openTelemetry: 'transfer_callbacks.deliveries',
    unit: '{delivery}',
    help: 'Deliveries of callbacks, by how they ended and where they came from.',
    labels: ['outcome', 'event', 'source'],
    // Reconciliation reads transfers only.
    zeros: outcomeLabels.flatMap((outcome) =>
      sourceLabels
        .filter(({ source }) => outcome.event !== 'other' || source === 'http')
        .map((source) => ({ ...outcome, ...source })),
    ),
  },
  deliveryDuration: {
    kind: 'histogram',
    prometheus: 'transfer_callbacks_delivery_duration_seconds',
    openTelemetry: 'transfer_callbacks.delivery.duration',
    unit: 's',
    help: 'From the arrival of a delivery to its outcome.',
    labels: ['outcome', 'event'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30],
    zeros: outcomeLabels,
  },
  outcomeAge: {
    kind: 'histogram',
    prometheus: 'transfer_callbacks_outcome_age_seconds',
    openTelemetry: 'transfer_callbacks.outcome.age',
    unit: 's',
    help: 'From the final status of a transfer at the service to the success of its handler.',
    labels: ['source'],
    // The attempts follow after 0, 30 s and longer pauses (service §6.3); a reconciliation run after minutes or hours.
    buckets: [1, 5, 15, 45, 120, 300, 900, 3_600, 21_600, 86_400],
    zeros: sourceLabels,
  },
  lastDelivery: {
    kind: 'gauge',
    prometheus: 'transfer_callbacks_last_delivery_timestamp_seconds',
    openTelemetry: 'transfer_callbacks.last_delivery.timestamp',
    unit: 's',
    help: 'When the last delivery ended, whatever its outcome, in seconds since 1970.',
    labels: ['source'],
    aggregator: 'max',
  },
  overlaps: {
    kind: 'counter',
    prometheus: 'transfer_callbacks_overlaps_total',
    openTelemetry: 'transfer_callbacks.overlaps',
    unit: '{delivery}',
    help: 'Deliveries that were handled after their lease had passed to another one: their handler may have run twice.',
    labels: [],
    zeros: [{}],
  },
  verifiedInvalid: {
    kind: 'counter',
    prometheus: 'transfer_callbacks_verified_invalid_total',
    openTelemetry: 'transfer_callbacks.verified_invalid',
    unit: '{delivery}',
    help: 'Invalid deliveries of a sender that a verifier accepted: each may announce the end of a payout.',
    labels: [],
    zeros: [{}],
  },
  unrecorded: {
    kind: 'counter',
    prometheus: 'transfer_callbacks_unrecorded_total',
    openTelemetry: 'transfer_callbacks.unrecorded',
    unit: '{delivery}',
    help: 'Deliveries that were handled, but whose record could not be written immediately.',
    labels: [],
    zeros: [{}],
  },
  reconciled: {
    kind: 'counter',
    prometheus: 'transfer_callbacks_reconciled_total',
    openTelemetry: 'transfer_callbacks.reconciled',
    unit: '{transfer}',
    help: 'Transfers checked by reconciliation runs, by result.',
    labels: ['result'],
    zeros: results.map((result) => ({ result })),
  },
  reconciliationLastEnd: {
    kind: 'gauge',
    prometheus: 'transfer_callbacks_reconciliation_last_end_timestamp_seconds',
    openTelemetry: 'transfer_callbacks.reconciliation.last_end.timestamp',
    unit: 's',
    help: 'Time of the last reconciliation run that was not stopped by a failure, in seconds since 1970.',
    labels: [],
    aggregator: 'max',
  },
  openTransfers: {
    kind: 'gauge',
    prometheus: 'transfer_callbacks_open_transfers',
    openTelemetry: 'transfer_callbacks.open_transfers',
    unit: '{transfer}',
    help: 'Transfers that were still open after the last reconciliation run that reached its end.',
    labels: [],
    aggregator: 'max',
  },
  oldestOpenTransfer: {
    kind: 'gauge',
    prometheus: 'transfer_callbacks_oldest_open_transfer_timestamp_seconds',
    openTelemetry: 'transfer_callbacks.oldest_open_transfer.timestamp',
    unit: 's',
    help: 'When the oldest of the open transfers was created, in seconds since 1970. Absent if none is open.',
    labels: [],
    aggregator: 'min',
  },
} as const satisfies Record<string, Metric>;

export type MetricName = keyof typeof metrics;
