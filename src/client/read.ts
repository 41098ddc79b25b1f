import { onlyKnownOptions, requireFunction } from '../core/checks.js';
import { requireIterable } from './checks.js';
import type { Lookup } from './lookup.js';
import {
  checkPassOptions,
  emptyPassReport,
  passOptionNames,
  type PassOptions,
  type PassReport,
} from './pass-options.js';
import { Pass } from './pass.js';

/** What the service responds for one transfer. */
export type TransferReading = { id: string } & Lookup;

/** The number of transfers with each result, and what is known of the pass. Safe as JSON. */
export interface ReadingReport extends Record<TransferReading['result'], number>, PassReport<string> {}

/** Options of `readTransfers`. */
export interface ReadOptions extends PassOptions {
  /** The service's ids or your own. Taken one at a time, when needed. */
  ids: AsyncIterable<string> | Iterable<string>;
  /** Called once per transfer, and awaited. What it throws ends the pass. */
  onProgress: (reading: TransferReading, report: Readonly<ReadingReport>) => unknown;
}

/**
 * Reads transfers and changes nothing: for a report, or for support. Pauses and ends as `reconcileTransfers` does, and
 * rejects with the same errors.
 */
export async function readTransfers(options: ReadOptions): Promise<ReadingReport> {
  onlyKnownOptions(options, [...passOptionNames, 'ids', 'onProgress']);
  checkPassOptions(options);
  requireIterable('ids', options.ids);
  requireFunction('onProgress', options.onProgress, '(transfer) => {}');
  const report: ReadingReport = { final: 0, open: 0, unknown: 0, failed: 0, unread: 0, ...emptyPassReport() };
  const pass = new Pass(options.ids, options, report);
  await pass.run(async (id) => {
    const found = await pass.lookUp(id);
    report[found.result] += 1;
    await options.onProgress({ id, ...found }, report);
    return found.result !== 'unread';
  });
  return report;
}
