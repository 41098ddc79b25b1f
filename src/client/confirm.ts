import { transferCallbackSchema, type CallbackShape, type TransferCallback } from '../core/callback.js';
import { reconciliation } from '../core/delivery.js';
import { maxTimerMs, onlyKnownOptions, wholeNumber } from '../lib/checks.js';
import { deadlineSignal, withDeadline } from '../lib/deadline.js';
import { parseWith, requireSchema, type StandardSchema } from '../lib/standard-schema.js';
import { toPrintable } from '../lib/text.js';
import { Slots } from '../lib/slots.js';
import { announce, giveToCallback, requireTransaction, type ReadingClient } from './callback.js';
import { TransferClientError } from './errors.js';
import type { Transaction } from './get-transaction.js';
import { describeOpen } from './open-status.js';
import { translate } from './translate.js';

/** Options of `confirmWith`. */
export interface ConfirmOptions<C extends CallbackShape = TransferCallback> {
  /**
   * How many transfers are read at the same time. Four times as many callbacks may wait.
   * @default 8
   */
  concurrency?: number | undefined;
  /**
   * How long a callback waits until its transfer is read, and then for the response, in milliseconds each. The
   * receiver's `confirmTimeoutMs` limits both together.
   * @default 5_000
   */
  timeoutMs?: number | undefined;
  /**
   * The receiver's `schema`, if it has one.
   * @default transferCallbackSchema
   */
  schema?: StandardSchema<C> | undefined;
}

/** Callbacks that may wait, for each transfer that is read at the same time. */
const waitingPerSlot = 4;
const idsRemembered = 5_000;

/**
 * Makes a `confirm` for the receiver. It reads the transfer from the service and returns that in place of the callback:
 * the handler sees nothing of an unsigned POST. The receiver compares both (id, externalId, event, status, amount,
 * currency). If the transfer is not final, not as documented, or cannot be read in time, `confirm` rejects, and the
 * delivery is `unconfirmed`. It skips callbacks of source `reconciliation`, which were read a moment ago; only your own
 * code can choose the source, never a sender. Throws INVALID_ARGUMENT.
 *
 * Under a flood of forged callbacks:
 * - `concurrency` transfers are read at the same time, `4 * concurrency` callbacks wait, and all others are rejected
 *   immediately with BUSY;
 * - a rejected callback that the service repeats to this process goes first, so that new forged ones cannot overtake
 *   it: the last 5 000 to 10 000 such ids are remembered;
 * - a query whose callback has given up keeps its slot until it ends, for at most `timeoutMs` more, because the service
 *   may still work on it.
 *
 * @example
 * app.post('/callbacks/transfers', transferCallbackRouter({ ...options, confirm: confirmWith(client) }));
 */
export function confirmWith<C extends CallbackShape = TransferCallback>(
  client: ReadingClient,
  options: ConfirmOptions<C> = {},
): (callback: NoInfer<C>, context: { signal: AbortSignal; source?: string | undefined }) => Promise<NoInfer<C>> {
  onlyKnownOptions(options, ['concurrency', 'timeoutMs', 'schema']);
  const {
    concurrency = 8,
    timeoutMs = 5_000,
    schema = transferCallbackSchema as unknown as StandardSchema<C>,
  } = options;
  wholeNumber('concurrency', concurrency, { min: 1, example: 8 });
  wholeNumber('timeoutMs', timeoutMs, { min: 1, max: Math.floor(maxTimerMs / 2), example: 5_000 });
  requireSchema(schema);
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

  return async function confirmTransfer(callback, { signal, source }) {
    if (source === reconciliation) return callback;
    const { id } = callback.data;
    await takeSlot(id, signal);
    const transaction = requireTransaction(await readInSlot(client, id, { slots, timeoutMs, signal }));
    const read = announce(client, transaction);
    if (read === undefined) {
      throw new TransferClientError(
        'NOT_FINAL',
        `Expected the transfer to be final, but ${describeOpen(transaction.status)}.`,
      );
    }
    const parsed = translate('schema', () => parseWith(schema, read.callback));
    if ('value' in parsed) {
      if (parsed.value.event === read.event) return parsed.value;
      const message = 'Expected `toCallback` and `schema` to keep the event that was read; it differs.';
      throw new TransferClientError('UNREADABLE_RESPONSE', message);
    }
    const at = parsed.issues.map(({ path }) => path.map(String).join('.')).join(', ');
    throw new TransferClientError(
      'UNREADABLE_RESPONSE',
      `The transaction that was read is not as ${options.schema === undefined ? 'documented' : '`schema` expects'}, at ${toPrintable(at)}.` +
        (options.schema === undefined || client.toCallback !== undefined ? '' : giveToCallback),
    );
  };
}

/** Waits for the response until `signal` aborts or `timeoutMs` have passed. Releases the slot when the query ends. */
async function readInSlot(
  client: ReadingClient,
  id: string,
  { slots, timeoutMs, signal }: { slots: Slots; timeoutMs: number; signal: AbortSignal },
): Promise<Transaction> {
  const query = withDeadline(deadlineSignal(2 * timeoutMs, undefined), (deadline) =>
    client.getTransaction(id, { signal: deadline }),
  );
  const release = (): void => {
    slots.release();
  };
  query.then(release, release);
  const tooLate = (): Error =>
    new TransferClientError('UNAVAILABLE', `The transfer was not read within ${timeoutMs} ms.`);
  return withDeadline(deadlineSignal(timeoutMs, signal, tooLate), () => query);
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
    this.#newer.add(id);
  }

  /** Forgets the id, and returns whether it was there. */
  delete(id: string): boolean {
    return this.#newer.delete(id) || this.#older.delete(id);
  }
}
