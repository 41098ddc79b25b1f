import { requireFunction } from '../lib/checks.js';
import { setBackgroundTimer, setTurn } from '../lib/deadline.js';
import { TransferCallbackError } from '../lib/errors.js';
import type { ClaimParts } from './claim/call-store.js';

/** What a handler wants to be called once its success is recorded. */
export class AfterCommit {
  readonly #functions: (() => unknown)[] = [];
  #isOpen = true;
  /** Resolves when the functions have ended. `undefined` unless they were started. */
  ended: Promise<void> | undefined;

  /** Adds a function. Throws INVALID_ARGUMENT if it is none, or if the handler has finished. */
  add(call: () => unknown): void {
    requireFunction('afterCommit', call, '() => sendMail(data.externalId)');
    if (!this.#isOpen) {
      throw new TransferCallbackError(
        'INVALID_ARGUMENT',
        'Expected `afterCommit` to be called before the handler finishes.',
      );
    }
    this.#functions.push(call);
  }

  /** Accepts no more functions: one that is added later might never be called. */
  close(): void {
    this.#isOpen = false;
  }

  /**
   * Calls the functions after the response. `close` of the receiver waits for them. What they throw is logged, and also
   * that one has not ended after `handlerTimeoutMs`.
   */
  start(logFields: { readonly delivery: string; readonly id: string }, { options, inFlight }: ClaimParts): void {
    if (this.#functions.length === 0) return;
    const { logger, handlerTimeoutMs } = options;
    const running = { id: logFields.id };
    inFlight.add(running);
    const callAndLog = async (call: () => unknown): Promise<void> => {
      const late = setBackgroundTimer(() => {
        const message = `A function of \`afterCommit\` has not ended after ${handlerTimeoutMs} ms; it still runs.`;
        logger.warn(logFields, message);
      }, handlerTimeoutMs);
      try {
        await call();
      } catch (error) {
        logger.error({ ...logFields, err: error }, 'A function of `afterCommit` threw; the callback stays handled.');
      } finally {
        clearTimeout(late);
      }
    };
    const callAll = async (): Promise<void> => {
      await new Promise<void>((resolve) => setTurn(resolve));
      await Promise.all(this.#functions.map(callAndLog));
      inFlight.remove(running);
    };
    this.ended = callAll();
  }
}
