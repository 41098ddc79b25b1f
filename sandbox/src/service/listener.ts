import type { RequestListener } from 'node:http';
import { isLoopback } from '../attempt/address.js';
import { consoleListener, isConsolePath, type ConsoleParts } from './console-listener.js';
import { refuseHost } from './origin-guard.js';
import { serviceListener, type ServiceParts } from './service-listener.js';
import { sendError } from './http-messages.js';

/** Responds as the service and, unless it is switched off, as the console. */
export function sandboxListener(parts: ConsoleParts & ServiceParts): RequestListener {
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
