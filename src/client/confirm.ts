import { reconciliation } from '../core/delivery.js';
import type { Ask, ConfirmByQuery, ConfirmLimits, Found, PayoutService } from '../core/payout-service.js';
import { maxTimerMs, onlyKnownOptions, wholeNumber } from '../lib/checks.js';
import { deadlineSignal, withDeadline } from '../lib/deadline.js';
import { Slots } from '../lib/slots.js';
import { copyString } from '../lib/text.js';
import { TransferClientError } from './errors.js';
import { describeOpen } from './open-status.js';

/** Callbacks that may wait, for each transfer that is read at the same time. */
const waitingPerSlot = 4;
const idsRemembered = 5_000;

/** Returns the service with the ways to ask it. Receivers with `confirm: true` share one queue. */
export function withAsk<S extends PayoutService>(service: S, ask: Ask): S & { readonly ask: Ask } {
  const shared = makeConfirm(ask);
  return { ...service, ask, makeConfirm: (limits) => (limits === undefined ? shared : makeConfirm(ask, limits)) };
}

/**
 * Makes a `confirm` for the receiver. It asks the service for the transfer, and the receiver reads that in place of the
 * callback: the handler sees nothing of an unsigned POST. The receiver compares both (id, externalId, event, status,
 * amount, currency). If the transfer is not final, or cannot be read in time, `confirm` rejects, and the delivery is
 * `unconfirmed`. It skips callbacks of source `reconciliation`, which were read a moment ago; only your own code can
 * choose the source, never a sender. Throws INVALID_ARGUMENT.
 *
 * Under a flood of forged callbacks:
 * - `concurrency` transfers are read at the same time, `4 * concurrency` callbacks wait, and all others are rejected
 *   immediately with BUSY;
 * - a rejected callback that the service repeats to this process goes first, so that new forged ones cannot overtake
 *   it: the last 5 000 to 10 000 such ids are remembered;
 * - a query whose callback has given up keeps its slot until it ends, for at most `timeoutMs` more, because the service
 *   may still work on it.
 */
function makeConfirm(ask: Ask, limits: ConfirmLimits = {}): ConfirmByQuery {
  onlyKnownOptions(limits, ['concurrency', 'timeoutMs']);
  const { concurrency = 8, timeoutMs = 5_000 } = limits;
  wholeNumber('concurrency', concurrency, { min: 1, example: 8 });
  wholeNumber('timeoutMs', timeoutMs, { min: 1, max: Math.floor(maxTimerMs / 2), example: 5_000 });
  const slots = new Slots(concurrency);
  const unserved = new RecentIds();

  async function takeSlot(id: string, signal: AbortSignal): Promise<void> {
    const urgent = unserved.delete(id);
    const deadline = deadlineSignal(timeoutMs, signal, tooMany);
    try {
      if (slots.waiting({ urgent }) >= waitingPerSlot * concurrency) throw tooMany();
      await slots.take(deadline.signal, { urgent });
    } catch (error) {
      unserved.add(id);
      throw error;
    } finally {
      deadline.clear();
    }
  }

  /** Waits for the response until `signal` aborts or `timeoutMs` have passed. Releases the slot when the query ends. */
  function readInSlot(id: string, signal: AbortSignal): Promise<Found> {
    const query = withDeadline(deadlineSignal(2 * timeoutMs, undefined), (deadline) => ask(id, deadline));
    const release = (): void => {
      slots.release();
    };
    query.then(release, release);
    const tooLate = (): Error =>
      new TransferClientError('UNAVAILABLE', `The transfer was not read within ${timeoutMs} ms.`);
    return withDeadline(deadlineSignal(timeoutMs, signal, tooLate), () => query);
  }

  return async function confirmTransfer(callback, { signal, source }) {
    if (source === reconciliation) return true;
    const { id } = callback.data;
    await takeSlot(id, signal);
    const { transaction, announcement } = await readInSlot(id, signal);
    if (announcement !== undefined) return announcement.callback;
    throw new TransferClientError(
      'NOT_FINAL',
      `Expected the transfer to be final, but ${describeOpen(transaction.status)}.`,
    );
  };
}

function tooMany(): Error {
  return new TransferClientError('BUSY', 'Too many callbacks are waiting to be confirmed.');
}

/** Remembers the last 5 000 to 10 000 ids. */
class RecentIds {
  #newer = new Set<string>();
  #older = new Set<string>();

  add(id: string): void {
    if (this.#newer.size >= idsRemembered) {
      this.#older = this.#newer;
      this.#newer = new Set();
    }
    this.#newer.add(copyString(id));
  }

  /** Forgets the id, and returns whether it was there. */
  delete(id: string): boolean {
    return this.#newer.delete(id) || this.#older.delete(id);
  }
}
