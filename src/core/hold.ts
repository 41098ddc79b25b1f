import type { CallbackShape } from './callback.js';
import type { Deadlines, WithinStoreDeadline } from './deadlines.js';
import { TransferCallbackError } from './errors.js';
import { deadlinesHeld, renewalsPerLease, type ResolvedOptions } from './options.js';
import type { Ending } from './outcome.js';
import type { Lease } from './store.js';
import { pause } from './timing.js';

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

/** What all holds of a receiver share. */
export interface HoldTerms<C extends CallbackShape, Tx> {
  readonly options: ResolvedOptions<C, Tx>;
  /** When leases are to be renewed. */
  readonly heartbeats: Deadlines;
  readonly withinStoreDeadline: WithinStoreDeadline;
}

const firstPauseMs = 100;

/** Holds `lease`; `onOver` is called once, when nothing of it is left to do. */
export function holdLease<C extends CallbackShape, Tx>(
  id: string,
  lease: Lease<Tx>,
  { options, heartbeats, withinStoreDeadline }: HoldTerms<C, Tx>,
  onOver: (hold: Hold) => void,
): Hold {
  const { store, logger, leaseMs, handlerTimeoutMs, retentionMs } = options;
  const controller = new AbortController();
  const handlerEndsBy = performance.now() + deadlinesHeld * handlerTimeoutMs;
  let handled = false;
  let over = false;

  let heartbeat = heartbeats.set(beat);

  function beat(): void {
    heartbeat = heartbeats.set(beat);
    void renewHeldLease();
  }

  async function renewHeldLease(): Promise<void> {
    if (!handled && performance.now() > handlerEndsBy) {
      heartbeats.clear(heartbeat);
      logger.error({ id }, `A handler has been running for ${deadlinesHeld} deadlines: its lease is renewed no more.`);
      return;
    }
    try {
      if (await withinStoreDeadline(lease.renew())) return;
    } catch {
      return; // The next beat comes while the lease still lasts.
    }
    if (over) return;
    heartbeats.clear(heartbeat);
    controller.abort(new TransferCallbackError('LEASE_LOST', 'The lease passed to another delivery.'));
    logger.error({ id }, 'The lease of a transfer callback was lost: another delivery may run its handler too.');
  }

  function end(): void {
    heartbeats.clear(heartbeat);
    if (over) return;
    over = true;
    onOver(hold);
  }

  async function recordInBackground(): Promise<void> {
    const giveUpAt = performance.now() + retentionMs;
    let pauseMs = firstPauseMs;
    while (!over && performance.now() < giveUpAt) {
      await pause(pauseMs, { keepAlive: false });
      pauseMs = Math.min(2 * pauseMs, leaseMs / renewalsPerLease);
      try {
        const { overlapped } = await withinStoreDeadline(lease.settle());
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
        const { overlapped } = await withinStoreDeadline(lease.settle());
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
      heartbeats.clear(heartbeat);
      try {
        await withinStoreDeadline(lease.release());
      } catch (error) {
        logger.warn({ id, err: error }, `A claim could not be released: it lapses within ${leaseMs} ms.`);
      }
      end();
    },
    letGo: end,
  };
  return hold;
}
