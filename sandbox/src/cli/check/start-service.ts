import { startSandbox } from '../../service/sandbox.js';
import { toNumber, UsageError } from '../../../../src/cli/arguments.js';
import { fileOptions, loadService, type Origin, type ServiceFiles } from './load-service.js';
import { documentedService } from './documented.js';
import type { Service } from './service.js';

/** Which service sends the callbacks. */
export interface ServiceValues extends Omit<ServiceFiles, 'service'> {
  readonly service?: string | undefined;
  readonly port?: string | undefined;
}

/** The service of a check. */
export interface RunningService {
  readonly service: Service;
  /** Where the definition comes from; `undefined` unless the service was named. */
  readonly origin?: Origin | undefined;
  /** Where it responds to queries; `undefined` for a defined service, which cannot be asked. */
  readonly url: string | undefined;
  /** Why it has refused the key of the app; `undefined` if it has not. */
  readonly findKeyRefusal: () => string | undefined;
  readonly close: () => Promise<void>;
}

/** Starts the documented service, or loads another one. `callbackUrl` is the endpoint. Throws UsageError. */
export async function startService(values: ServiceValues, callbackUrl?: string): Promise<RunningService> {
  const { service, port, ...files } = values;
  if (service === undefined) {
    const given = fileOptions.find((name) => files[name] !== undefined);
    if (given === undefined) return startDocumented(port);
    throw new UsageError(`Expected --service beside --${given}.`);
  }
  if (port !== undefined) throw new UsageError('Expected --port or --service, not both: no query of it is answered.');
  const loaded = await loadService({ ...files, service }, callbackUrl);
  return { ...loaded, url: undefined, findKeyRefusal: () => undefined, close: () => Promise.resolve() };
}

/** It sends nothing by itself: its time stands still, and its transfers have no callback URL. */
async function startDocumented(port: string | undefined): Promise<RunningService> {
  let keyRefusal: string | undefined;
  const sandbox = await startSandbox(
    {
      port: toNumber('--port', port) ?? 0,
      apiKey: process.env.SANDBOX_API_KEY,
      apiSecret: process.env.SANDBOX_API_SECRET,
      clock: 'manual',
      finalAfterMs: 0,
      console: false,
    },
    (reason) => {
      keyRefusal ??= reason;
    },
  );
  return {
    service: documentedService(sandbox),
    url: sandbox.baseUrl,
    findKeyRefusal: () => keyRefusal,
    close: () => sandbox.close(),
  };
}
