import { reconciliation } from '../core/delivery.js';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { metrics, results, type CounterMetric, type GaugeMetric, type HistogramMetric } from './table.js';
import type { Labels, Metric, MetricName } from './table.js';

/** Adds to a counter, or observes in a histogram. */
export type Write = (value: number, labels: Labels) => void;

/** Sets a gauge; `undefined` removes its series. */
type WriteGauge = (value: number | undefined, labels: Labels) => void;

/** Makes the instruments of a metrics library. */
interface Instruments {
  counter(metric: CounterMetric): Write;
  histogram(metric: HistogramMetric): Write;
  gauge(metric: GaugeMetric): WriteGauge;
}

type Writes = { readonly [Name in MetricName]: (typeof metrics)[Name]['kind'] extends 'gauge' ? WriteGauge : Write };

/**
 * The fields of an outcome that the metrics read. Not the receiver's own type: the message may come from another copy
 * of this package, possibly of another version.
 */
interface OutcomeMessage {
  readonly outcome: string;
  readonly event?: string | undefined;
  readonly source: string;
  readonly durationMs: number;
  readonly timestamp?: string;
  readonly verified?: boolean;
  readonly late?: true;
  readonly overlapped?: boolean;
  readonly error?: unknown;
}

/** The fields of a reconciliation run that the metrics read. */
interface PassMessage {
  readonly report: Counts & { readonly stopped?: string | undefined; readonly paid?: Counts | undefined };
  readonly oldestOpenAt?: Date | undefined;
  readonly onlyPaid?: boolean;
}

type Counts = Readonly<Record<(typeof results)[number], number>>;

const outcomeChannel = 'transfer-callbacks:outcome';
const passChannel = 'transfer-callbacks:reconciled';

/**
 * Makes all instruments, and records what the receivers and the reconciliation runs of this process publish. Covers
 * the ESM and the CommonJS copy of this package. Returns a function that ends the recording.
 */
export function recordMetrics(instruments: Instruments): () => void {
  const { recordOutcome, recordPass } = new Recorder(instruments);
  subscribe(outcomeChannel, recordOutcome);
  subscribe(passChannel, recordPass);
  return () => {
    unsubscribe(outcomeChannel, recordOutcome);
    unsubscribe(passChannel, recordPass);
  };
}

class Recorder {
  readonly #writes: Writes;
  readonly #sources = new Set(['http', reconciliation]);

  constructor(instruments: Instruments) {
    const entries = Object.entries<Metric>(metrics).map(([name, metric]) => {
      return [name, instruments[metric.kind](metric as never)];
    });
    this.#writes = Object.fromEntries(entries) as Writes;
  }

  readonly recordOutcome = (published: unknown): void => {
    const message = published as OutcomeMessage;
    const { outcome, late, timestamp = '' } = message;
    const source = this.#boundedSource(message.source);
    const event = toKind(message.event);
    // A late outcome is the second one of its delivery. The delivery was counted as `timed_out`.
    if (late !== true) {
      this.#write('deliveries', 1, { outcome, event, source });
      this.#write('deliveryDuration', message.durationMs / 1_000, { outcome, event });
      this.#write('lastDelivery', Date.now() / 1_000, { source });
    }
    if (message.verified === true) this.#write('verifiedInvalid', 1);
    if (outcome !== 'processed') return;
    // The age is negative if the service's clock is ahead of this one.
    this.#write('outcomeAge', Math.max(0, Date.now() - Date.parse(timestamp)) / 1_000, { source });
    if (message.overlapped === true) this.#write('overlaps', 1);
    if (message.error !== undefined) this.#write('unrecorded', 1);
  };

  readonly recordPass = (published: unknown): void => {
    const { report, oldestOpenAt, onlyPaid } = published as PassMessage;
    const { stopped, paid } = report;
    for (const result of results) this.#write('reconciled', report[result] + (paid?.[result] ?? 0), { result });
    // It has looked at no open transfer, and must not hide that no other run does.
    if (onlyPaid === true) return;
    // A run that a failure ended, such as a revoked key, must not look like a complete one. An abort is not a failure,
    // because the signal may be the run's own timeout.
    if (stopped !== undefined && stopped !== 'limit' && stopped !== 'aborted') return;
    this.#write('reconciliationLastEnd', Date.now() / 1_000);
    if (stopped !== undefined) return;
    this.#write('openTransfers', report.pending + report.unknown + report.failed);
    if (oldestOpenAt === undefined) this.#writes.oldestOpenTransfer(undefined, {});
    else this.#write('oldestOpenTransfer', oldestOpenAt.getTime() / 1_000);
  };

  /** Limits the sources, which the app chooses: a new source per request would fill the registry. */
  #boundedSource(source: string): string {
    if (this.#sources.has(source)) return source;
    if (this.#sources.size >= maxSources) return 'other';
    this.#sources.add(source);
    return source;
  }

  #write(name: MetricName, value: number, labels: Labels = {}): void {
    // A metrics library may throw for NaN, and an error in a channel's subscriber ends the process.
    if (Number.isFinite(value)) this.#writes[name](value, labels);
  }
}

const maxSources = 10;

/** Returns the kind of an event, never a name that the sender chose. */
function toKind(event: string | undefined): string {
  if (event === undefined) return 'none';
  return event === 'other' ? 'other' : 'transfer';
}
