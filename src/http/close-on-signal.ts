import type { TransferCallbackReceiver } from '../core/receiver.js';
import { hasMethods, invalidArgument, wholeNumber } from '../lib/checks.js';
import { setBackgroundTimer } from '../lib/deadline.js';

/** What `closeOnSignal` calls of a server of `node:http`, `https` or `http2`. */
export interface ClosableServer {
  close(closed: () => void): unknown;
  closeAllConnections?(): void;
}

const signals = ['SIGTERM', 'SIGINT'] as const;

/** After the last response of the receiver: for those of the rest of the app. */
const restMs = 1_000;

/**
 * Closes the server and the receiver at the first SIGTERM or SIGINT: running deliveries finish and get their responses, new
 * ones go to another process. Resolves after that, as `receiver.close` does: then close your database, and exit. A second
 * signal ends the process. `timeoutMs` is that of `receiver.close`, 10 000 by default. Throws INVALID_ARGUMENT.
 *
 * @example
 * const { unfinished } = await closeOnSignal(app.listen(3000), receiver);
 * process.exit(unfinished > 0 ? 1 : 0);
 */
export function closeOnSignal(
  server: ClosableServer,
  receiver: { close: TransferCallbackReceiver['close'] },
  { timeoutMs = 10_000 }: { timeoutMs?: number | undefined } = {},
): ReturnType<TransferCallbackReceiver['close']> {
  const code = 'closeOnSignal(app.listen(3000), receiver)';
  if (!hasMethods(server, 'close')) throw invalidArgument('server', 'the server that `listen` returned', server, code);
  if (!hasMethods(receiver, 'close', 'receive')) {
    throw invalidArgument('receiver', 'what `transferCallbackReceiver` returned', receiver, code);
  }
  wholeNumber('timeoutMs', timeoutMs, { min: 0 });
  return new Promise((resolve, reject) => {
    const onSignal = (): void => {
      for (const signal of signals) process.off(signal, onSignal);
      closeBoth(server, receiver, timeoutMs).then(resolve, reject);
    };
    for (const signal of signals) process.on(signal, onSignal);
  });
}

async function closeBoth(
  server: ClosableServer,
  receiver: { close: TransferCallbackReceiver['close'] },
  timeoutMs: number,
): ReturnType<TransferCallbackReceiver['close']> {
  // First no new connections, then no new deliveries on the open ones.
  const serverClosed = new Promise<void>((resolve) => {
    server.close(resolve);
  });
  const result = await receiver.close({ timeoutMs });
  // `close` of the server ends Node's check of `requestTimeout`: a request that never ends would keep the server open.
  const rest = new Promise<void>((resolve) => setBackgroundTimer(resolve, restMs));
  await Promise.race([serverClosed, rest]);
  server.closeAllConnections?.();
  return result;
}
