import { TransferCallbackError } from './errors.js';
import { deadlinesHeld, renewalsPerLease, type ResolvedOptions } from './options.js';
import type { Ending } from './outcome.js';
import type { Lease } from './store.js';
import { pause, withinStoreDeadline } from './timing.js';
import type { CallbackShape } from './callback.js';

/** A lease in the receiver's hands: renewed by itself until it is settled, released or let go. */
export interface Hold {
  /** Aborts the handler's signal. */
  readonly controller: AbortController;
  /** Records the handler's success. Never rejects: what cannot be recorded now is tried again in the background. */
  settle(): Promise<Ending>;
  /** Frees the callback. Never rejects: what cannot be freed now lapses. */
  release(): Promise<void>;
  /** Stops renewing and retrying, and leaves the callback to what remains of its lease. */
  letGo(): void;
}

const firstPauseMs = 100;

/** Holds `lease`; `onOver` is called once, when nothing of it is left to do. */
export function holdLease<C extends CallbackShape, Tx>(
  id: string,
  lease: Lease<Tx>,
  options: ResolvedOptions<C, Tx>,
  onOver: (hold: Hold) => void,
): Hold {
  const { store, logger, leaseMs, handlerTimeoutMs, storeTimeoutMs, retentionMs } = options;
  const beatMs = leaseMs / renewalsPerLease;
  const controller = new AbortController();
  const handlerEndsBy = performance.now() + deadlinesHeld * handlerTimeoutMs;
  let handled = false;
  let over = false;

  // A heartbeat alone keeps no process alive.
  const heartbeat = setInterval(() => void renewHeldLease(), beatMs).unref();

  async function renewHeldLease(): Promise<void> {
    if (!handled && performance.now() > handlerEndsBy) {
      clearInterval(heartbeat);
      logger.error({ id }, `A handler has been running for ${deadlinesHeld} deadlines: its lease is renewed no more.`);
      return;
    }
    try {
      if (await withinStoreDeadline(storeTimeoutMs, lease.renew())) return;
    } catch {
      return; // The next beat comes while the lease still lasts.
    }
    if (over) return;
    clearInterval(heartbeat);
    controller.abort(new TransferCallbackError('LEASE_LOST', 'The lease passed to another delivery.'));
    logger.error({ id }, 'The lease of a transfer callback was lost: another delivery may run its handler too.');
  }

  function end(): void {
    clearInterval(heartbeat);
    if (over) return;
    over = true;
    onOver(hold);
  }

  async function record(): Promise<{ overlapped: boolean }> {
    return withinStoreDeadline(storeTimeoutMs, lease.settle());
  }

  async function recordInBackground(): Promise<void> {
    const giveUpAt = performance.now() + retentionMs;
    let pauseMs = firstPauseMs;
    while (!over && performance.now() < giveUpAt) {
      await pause(pauseMs, { keepAlive: false });
      pauseMs = Math.min(2 * pauseMs, beatMs);
      try {
        const { overlapped } = await record();
        logger.warn({ id, overlapped }, 'A handled transfer callback was recorded after all.');
        break;
      } catch {
        // Reported when it failed first.
      }
    }
    end();
  }

  const hold: Hold = {
    controller,
    async settle() {
      handled = true;
      try {
        const { overlapped } = await record();
        end();
        return { outcome: 'processed', overlapped };
      } catch (error) {
        if (store.transactional === true) {
          await hold.release();
          return { outcome: 'store_unavailable', error };
        }
        // The handler has succeeded: to say otherwise would make the service have it run again.
        void recordInBackground();
        return { outcome: 'processed', overlapped: false, error };
      }
    },
    async release() {
      clearInterval(heartbeat);
      try {
        await withinStoreDeadline(storeTimeoutMs, lease.release());
      } catch (error) {
        logger.warn({ id, err: error }, `A claim could not be released: it lapses within ${leaseMs} ms.`);
      }
      end();
    },
    letGo: end,
  };
  return hold;
}
