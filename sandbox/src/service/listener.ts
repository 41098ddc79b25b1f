import type { RequestListener } from 'node:http';
import { isLoopback } from '../attempt/address.js';
import type { SandboxClock } from './clock.js';
import { consoleListener, isConsolePath } from './console-listener.js';
import { refuseHost } from './origin-guard.js';
import type { ResolvedSandboxOptions } from './options.js';
import { serviceListener, type SandboxKeys } from './service-listener.js';
import type { ConsoleStream } from './stream.js';
import type { PayoutService } from './payout-service.js';
import { sendError } from './http-messages.js';

interface ListenerParts {
  readonly keys: SandboxKeys;
  readonly transfers: PayoutService;
  readonly stream: ConsoleStream;
  readonly clock: SandboxClock;
  readonly advance: (ms: number) => Promise<void>;
  readonly onKeyRefused: (reason: string) => void;
}

/** Responds as the service and, unless it is switched off, as the console. */
export function sandboxListener(
  options: ResolvedSandboxOptions,
  { keys, transfers, stream, clock, advance, onKeyRefused }: ListenerParts,
): RequestListener {
  const respondAsService = serviceListener(keys, transfers, onKeyRefused);
  const respondAsConsole = consoleListener({
    options,
    stream,
    resend: (id) => transfers.resend(id),
    contradict: (id) => transfers.contradict(id),
    forge: (id, forgery) => transfers.forge(id, forgery),
    clear: () => {
      transfers.clear();
    },
    setSpeed: (speed) => {
      clock.setSpeed(speed);
      stream.publish();
    },
    advance: (ms) => advance(ms ?? Math.max(0, Math.ceil((clock.nextMs ?? 0) - clock.nowMs()))),
  });

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
