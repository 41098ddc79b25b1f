import { once, setMaxListeners } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { baseUrlAt, isLoopback } from '../attempt/address.js';
import { SandboxClock } from './clock.js';
import type { SenderParts, SandboxAttempt } from './series.js';
import { resolveSandboxOptions, type ResolvedSandboxOptions, type TransferSandboxOptions } from './options.js';
import type { TransferScenario } from './scenarios.js';
import { consoleListener, isConsolePath, type ConsoleParts } from './console-listener.js';
import { sendError } from './http-messages.js';
import { refuseHost } from './origin-guard.js';
import { serviceListener, type SandboxKeys, type ServiceParts } from './service-listener.js';
import { ConsoleStream } from './stream.js';
import type { SandboxTransfer } from './history.js';
import { PayoutService } from './payout-service.js';

/** After Node's own 5 s a busy process would send its next request while the connection is closed: ECONNRESET. */
const keepAliveMs = 60_000;

/**
 * A running imitation of the transfer service.
 *
 * @example
 * async function stop(sandbox: TransferSandbox): Promise<void> {
 *   await sandbox.idle();
 *   await sandbox.close();
 * }
 */
export interface TransferSandbox {
  /** The service's `{base_url}`, without a slash at its end. */
  readonly baseUrl: string;
  /** The address of the console, a page for the browser; `undefined` with `console: false`. */
  readonly consoleUrl: string | undefined;
  readonly keys: SandboxKeys;
  /** Every attempt that has ended, in the order of ending. The array grows while the sandbox runs. */
  readonly attempts: readonly SandboxAttempt[];
  /** Every transfer, as it is now, in the order of creation. */
  transfers(): readonly SandboxTransfer[];
  /** Chooses the scenario of a transfer that you create later, whatever its externalId begins with. */
  setScenario(externalId: string, scenario: TransferScenario): void;
  /**
   * Delivers the callback of a final transfer again, the same bytes with up to 4 new attempts, whatever its
   * scenario. Resolves when the first of them has ended.
   */
  resend(idOrExternalId: string): Promise<void>;
  /**
   * Sends the other final status of a transfer under the same id, with up to 4 attempts. The documentation excludes
   * this (service §3.2), but other services do it. From then on a query shows that one. Resolves when the first
   * attempt has ended.
   */
  contradict(idOrExternalId: string): Promise<void>;
  /**
   * Moves sandbox time on by `ms`. What is due happens in order, each at its own time; attempts that are due at the
   * same time are made concurrently. Resolves when they have ended. Do not await it within `onAttempt` or while
   * responding to a callback: it would wait for itself.
   */
  advance(ms: number): Promise<void>;
  /**
   * Resolves when no transfer is pending and no attempt is under way or due. With a manual clock it waits only for the
   * attempts under way, since what is due waits for `advance`.
   */
  idle(): Promise<void>;
  /** Aborts attempts under way, forgets those that are due and frees the port. May be called again. */
  close(): Promise<void>;
}

/**
 * Starts the transfer service as its documentation describes it, on this machine. Transfers are created and queried
 * over HTTP, become final after a while, and are reported to their `callbackUrl`. What the documentation does not
 * show is a guess, and called one in the doc comments. Rejects with INVALID_ARGUMENT, or with the error of `listen`.
 *
 * @example
 * const sandbox = await transferSandbox({ callbackUrl, speed: 1_000 });
 * const service = transferService({ baseUrl: sandbox.baseUrl, ...sandbox.keys.valid });
 * await service.createTransfer({ callbackUrl, externalId: 'lost-attempts-1' });
 * await sandbox.idle();
 */
export function transferSandbox(options: TransferSandboxOptions = {}): Promise<TransferSandbox> {
  return startSandbox(options);
}

/** Does the same. Calls `onKeyRefused` with the reason for which a key is refused, for a command that names it. */
export async function startSandbox(
  options: TransferSandboxOptions,
  onKeyRefused: (reason: string) => void = () => undefined,
): Promise<TransferSandbox> {
  const resolved = resolveSandboxOptions(options);
  const keys = keysLike(resolved);
  const clock = new SandboxClock(resolved.clock ?? resolved.speed);
  const ending = new AbortController();
  // Each attempt under way adds a listener: more than ten are not a leak.
  setMaxListeners(0, ending.signal);
  const attempts: SandboxAttempt[] = [];
  const stream = new ConsoleStream(clock, (query) => transfers.view(query));
  const parts: SenderParts = {
    clock,
    timeoutMs: resolved.attemptTimeoutMs,
    headers: resolved.callbackHeaders,
    signal: ending.signal,
    record(attempt) {
      attempts.push(attempt);
      stream.publish(attempt);
      void callSafely(resolved.onAttempt, attempt);
    },
  };
  const transfers = new PayoutService(resolved, parts, () => {
    stream.publish();
  });
  async function advance(ms: number): Promise<void> {
    await clock.advance(ms);
    stream.publish();
  }

  const listener = sandboxListener({ options: resolved, keys, transfers, stream, clock, advance, onKeyRefused });
  const server = await listen(listener, resolved);
  const baseUrl = baseUrlAt(resolved.host, (server.address() as AddressInfo).port);

  let closed: Promise<void> | undefined;
  async function end(): Promise<void> {
    const serverClosed = once(server, 'close');
    server.close();
    ending.abort();
    server.closeAllConnections();
    await Promise.all([serverClosed, clock.stop()]);
  }

  return {
    baseUrl,
    consoleUrl: resolved.console ? `${baseUrl}/console/` : undefined,
    keys,
    attempts,
    transfers: () => transfers.list(),
    setScenario(externalId, scenario) {
      transfers.setScenario(externalId, scenario);
    },
    resend: (idOrExternalId) => transfers.resend(idOrExternalId),
    contradict: (idOrExternalId) => transfers.contradict(idOrExternalId),
    advance,
    idle: () => clock.idle(),
    close: () => (closed ??= end()),
  };
}

/** Responds as the service and, unless it is switched off, as the console. */
function sandboxListener(parts: ConsoleParts & ServiceParts): RequestListener {
  const { options } = parts;
  const respondAsService = serviceListener(parts);
  const respondAsConsole = consoleListener(parts);

  return function listenAsTheSandbox(request, response) {
    const isForConsole = options.console && isConsolePath(request);
    // On loopback the service is guarded too: through it a foreign web page could have any local port called. Beyond
    // loopback a merchant may reach the service under any host name, such as one of a container network.
    const refusal = isForConsole || isLoopback(options.host) ? refuseHost(request, options.host) : undefined;
    if (refusal !== undefined) sendError(response, refusal);
    else if (isForConsole) void respondAsConsole(request, response);
    else respondAsService(request, response);
  };
}

async function listen(listener: RequestListener, { port, host }: ResolvedSandboxOptions): Promise<Server> {
  const server = createServer(listener);
  server.keepAliveTimeout = keepAliveMs;
  server.listen(port, host);
  await once(server, 'listening');
  return server;
}

function keysLike({ apiKey, apiSecret }: ResolvedSandboxOptions): SandboxKeys {
  const like = (suffix: string) => ({ apiKey: `${apiKey}-${suffix}`, apiSecret: `${apiSecret}-${suffix}` });
  return {
    valid: { apiKey, apiSecret },
    expired: like('expired'),
    revoked: like('revoked'),
    merchantInactive: like('merchant-inactive'),
  };
}

async function callSafely(onAttempt: TransferSandboxOptions['onAttempt'], attempt: SandboxAttempt): Promise<void> {
  try {
    await onAttempt?.(attempt);
  } catch (error) {
    // Rethrown from within a timer, it would end the process.
    process.emitWarning(error instanceof Error ? error : String(error));
  }
}
