import { once, setMaxListeners } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { manualClock, scaledClock } from './clock.js';
import type { DeliveryTerms, SandboxAttempt } from './deliveries.js';
import { baseUrlAt, resolveSandboxOptions, type TransferSandboxOptions } from './options.js';
import type { TransferScenario } from './scenarios.js';
import { serviceListener, type SandboxKeys } from './server.js';
import { sandboxTransfers, type SandboxTransfer } from './transfers.js';

/** A running imitation of the transfer service. */
export interface TransferSandbox {
  /** Stands for the service's `{base_url}`: no slash at its end. */
  readonly baseUrl: string;
  readonly keys: SandboxKeys;
  /** Every attempt that has ended, in the order in which they ended; grows while the sandbox runs. */
  readonly attempts: readonly SandboxAttempt[];
  /** Every transfer, as it is now, in the order of creation. */
  transfers(): readonly SandboxTransfer[];
  /** Decides how a transfer that is yet to be created will go, before its name or `scenario` does. */
  setScenario(externalId: string, scenario: TransferScenario): void;
  /**
   * Delivers the callback of a final transfer again, the same bytes with up to 4 attempts of their own, whatever its
   * scenario. Resolves when the first of them has been answered.
   */
  resend(idOrExternalId: string): Promise<void>;
  /**
   * Moves sandbox time on by `ms`, for a manual clock alone: what is due happens in order, one after the other, each
   * at its own time. Resolves when the attempts among it have been answered. Do not await it within `onAttempt` or
   * while answering a callback: it would wait for itself.
   */
  advance(ms: number): Promise<void>;
  /**
   * Resolves when no transfer is pending, and no attempt is under way or due any more. With a manual clock it waits
   * only for attempts under way: what is still due waits for `advance`.
   */
  idle(): Promise<void>;
  /** Ends everything: attempts under way are broken off, those due forgotten, the port freed. May be called again. */
  close(): Promise<void>;
}

/**
 * Starts the transfer service as its documentation describes it, on this machine: transfers are created and queried
 * over HTTP, become final after a while, and are announced to their `callbackUrl`. What the documentation does not
 * show is a guess, and said to be one where it is made. Rejects with INVALID_OPTION, or with the error of `listen`.
 */
export async function transferSandbox(options: TransferSandboxOptions = {}): Promise<TransferSandbox> {
  const resolved = resolveSandboxOptions(options);
  const { apiKey, apiSecret, host, port, attemptTimeoutMs, onAttempt } = resolved;
  const like = (suffix: string) => ({ apiKey: `${apiKey}-${suffix}`, apiSecret: `${apiSecret}-${suffix}` });
  const keys: SandboxKeys = {
    valid: { apiKey, apiSecret },
    expired: like('expired'),
    revoked: like('revoked'),
    merchantInactive: like('merchant-inactive'),
  };
  const clock = resolved.clock === 'manual' ? manualClock() : scaledClock(resolved.speed);
  const ending = new AbortController();
  // Every attempt under way listens: more than ten of them are no leak.
  setMaxListeners(0, ending.signal);
  const attempts: SandboxAttempt[] = [];

  async function tell(attempt: SandboxAttempt): Promise<void> {
    try {
      await onAttempt?.(attempt);
    } catch (error) {
      // Thrown on, it would end the process from within a timer.
      process.emitWarning(error instanceof Error ? error : String(error));
    }
  }
  const terms: DeliveryTerms = {
    clock,
    timeoutMs: attemptTimeoutMs,
    signal: ending.signal,
    record(attempt) {
      attempts.push(attempt);
      void tell(attempt);
    },
  };
  const { create, query, resend, setScenario, transfers } = sandboxTransfers(resolved, terms);

  const server = createServer(serviceListener({ keys, create, query }));
  server.listen(port, host);
  await once(server, 'listening');

  let closed: Promise<void> | undefined;
  async function end(): Promise<void> {
    const serverClosed = once(server, 'close');
    server.close();
    ending.abort();
    server.closeAllConnections();
    await Promise.all([serverClosed, clock.stop()]);
  }

  return {
    baseUrl: baseUrlAt(host, (server.address() as AddressInfo).port),
    keys,
    attempts,
    transfers,
    setScenario,
    resend,
    advance: clock.advance,
    idle: clock.idle,
    close: () => (closed ??= end()),
  };
}
