import type { Redis } from 'ioredis';
import type { TransferCallback } from 'transfer-callbacks';

/** Short deadlines: the sandbox plays the service a hundred times as fast, and its first retry comes after 300 ms. */
export const payerOptions = { storeTimeoutMs: 1_000, leaseMs: 3_100, inFlightWaitMs: 500, logger: false } as const;

/** Handlers that write, by externalId, what came of a transfer, and how often a handler was run for it. */
export function effectsOn(
  redis: Redis,
  run: string,
): Record<'onSuccess' | 'onFailed', (callback: TransferCallback) => Promise<void>> {
  async function record({ data }: TransferCallback): Promise<void> {
    await redis.hincrby(`runs:${run}`, data.externalId, 1);
    // The work itself takes a moment, in which the process may be killed.
    await new Promise((resolve) => setTimeout(resolve, 2));
    await redis.hsetnx(`effects:${run}`, data.externalId, data.status);
  }
  return { onSuccess: record, onFailed: record };
}
