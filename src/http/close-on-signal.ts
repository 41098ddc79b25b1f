import type { TransferCallbackReceiver } from '../core/receiver.js';
import { hasMethods, invalidArgument, onlyKnownOptions, wholeNumber } from '../lib/checks.js';
import { pause } from '../lib/deadline.js';

/** What `closeOnSignal` calls of a server of `node:http`, `https` or `http2`. */
export interface ClosableServer {
  close(closed: () => void): unknown;
  closeIdleConnections?(): void;
  closeAllConnections?(): void;
  on?(event: 'session', listener: (session: ClosableSession) => void): unknown;
}

/** What `closeOnSignal` calls of a session of HTTP/2. */
interface ClosableSession {
  /** Takes no new stream, and closes when the open ones have ended. */
  close(): void;
  destroy(): void;
  once(event: 'close', listener: () => void): unknown;
}

const signals = ['SIGTERM', 'SIGINT'] as const;

/**
 * How long further signals belong to the same stop, in milliseconds. `npm start` under systemd, nodemon and Ctrl+C send
 * two, a millisecond apart.
 */
const sameStopMs = 1_000;

/** The least time for the other requests of the app after the last response of the receiver, in milliseconds. */
const leastRestMs = 1_000;

/** How often connections that have become idle are closed, in milliseconds. */
const idlePollMs = 100;

/**
 * Closes the server and the receiver at the first SIGTERM or SIGINT. Running deliveries and the other requests of
 * the app finish and get their responses, and new requests go to another process. Then it resolves as `receiver.close`
 * does: close your database, and exit. A signal that comes a second later or more ends the process. `timeoutMs` is that
 * of `receiver.close`, 10 000 by default. The other requests get the rest of it, and at least a second. Throws
 * INVALID_ARGUMENT.
 *
 * @example
 * const { unfinished } = await closeOnSignal(app.listen(3000), router.receiver);
 * process.exit(unfinished > 0 ? 1 : 0);
 */
export function closeOnSignal(
  server: ClosableServer,
  receiver: { close: TransferCallbackReceiver['close'] },
  options: { timeoutMs?: number | undefined } = {},
): ReturnType<TransferCallbackReceiver['close']> {
  const code = 'closeOnSignal(app.listen(3000), receiver)';
  if (!hasMethods(server, 'close')) throw invalidArgument('server', 'the server that `listen` returned', server, code);
  if (!hasMethods(receiver, 'close', 'receive')) {
    throw invalidArgument('receiver', 'what `transferCallbackReceiver` returned', receiver, code);
  }
  onlyKnownOptions(options, ['timeoutMs'], { example: 'closeOnSignal(server, receiver, { timeoutMs: 25_000 })' });
  const { timeoutMs = 10_000 } = options;
  wholeNumber('timeoutMs', timeoutMs, { min: 0 });
  const connections = new Connections(server);
  return new Promise((resolve, reject) => {
    let hasBegun = false;
    const onSignal = (): void => {
      if (hasBegun) return;
      hasBegun = true;
      closeBoth(connections, receiver, timeoutMs).then(resolve, reject);
      // Until then the listeners keep Node from ending the process. After that a signal ends it.
      void pause(sameStopMs, { keepAlive: false }).then(() => {
        for (const signal of signals) process.off(signal, onSignal);
      });
    };
    for (const signal of signals) process.on(signal, onSignal);
  });
}

/** The connections of a server. Node 20 closes no session of HTTP/2 with its server. */
class Connections {
  readonly #server: ClosableServer;
  readonly #sessions = new Set<ClosableSession>();
  #isClosing = false;

  constructor(server: ClosableServer) {
    this.#server = server;
    server.on?.('session', (session) => {
      this.#sessions.add(session);
      session.once('close', () => this.#sessions.delete(session));
      // A connection that was accepted before the signal.
      if (this.#isClosing) session.close();
    });
  }

  /** Takes no new connection. Aborts the signal that it returns when all have ended. */
  close(): AbortSignal {
    const closed = new AbortController();
    this.#isClosing = true;
    this.#server.close(() => {
      closed.abort();
    });
    for (const session of this.#sessions) session.close();
    return closed.signal;
  }

  closeIdle(): void {
    this.#server.closeIdleConnections?.();
  }

  /** `close` ends Node's check of `requestTimeout`: a request that never ends would keep the server open. */
  destroy(): void {
    this.#server.closeAllConnections?.();
    for (const session of this.#sessions) session.destroy();
  }
}

async function closeBoth(
  connections: Connections,
  receiver: { close: TransferCallbackReceiver['close'] },
  timeoutMs: number,
): ReturnType<TransferCallbackReceiver['close']> {
  const endsAt = performance.now() + timeoutMs;
  // First no new connections, then no new deliveries on the open ones.
  const closed = connections.close();
  const result = await receiver.close({ timeoutMs });
  const restEndsAt = Math.max(endsAt, performance.now() + leastRestMs);
  // Node closes the connections that are idle when `close` is called. Others become idle later, and would be kept
  // alive.
  while (!closed.aborted && performance.now() < restEndsAt) {
    connections.closeIdle();
    await pause(Math.min(idlePollMs, restEndsAt - performance.now()), { signal: closed });
  }
  connections.destroy();
  return result;
}
