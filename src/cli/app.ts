import { requireHeaders } from '../attempt/headers.js';
import type { TransferClient } from '../client.js';
import { hasMethods } from '../lib/checks.js';
import type { TransferCallbackError, TransferCallbackReceiver } from '../node.js';
import { describeInvalid, text, UsageError } from './arguments.js';
import { configFile, findConfigFile, loadExports } from './config-file.js';

/** What a configuration file exports. */
export interface App {
  readonly client?: TransferClient;
  readonly receiver?: TransferCallbackReceiver;
  readonly callbackUrl?: string | ((externalId: string) => string);
  readonly callbackHeaders?: Readonly<Record<string, string>>;
}

/** The parts of an app with which its transfers are inspected and reconciled. */
export interface ConnectedApp {
  readonly client: TransferClient;
  readonly receiver: TransferCallbackReceiver;
}

/** The option of every command that uses the app. */
export const appOptions = { config: text } as const;

export const appHelp = `  --config FILE              A module that exports the \`client\` and the
                             \`receiver\` of your app. Default:
                             ${configFile}, .js or .cjs`;

const example = `For example:

  import { transferClient } from 'transfer-callbacks/client';
  const { TRANSFER_API_KEY: apiKey, TRANSFER_API_SECRET: apiSecret } = process.env;
  export const client = transferClient({ baseUrl: 'https://service.example/api', apiKey, apiSecret });
  export { receiver } from './dist/payouts.js';`;

/** Loads a configuration file. Throws UsageError. */
export async function loadApp(file: string): Promise<App> {
  const { client, receiver, callbackUrl, callbackHeaders } = await loadExports(file);
  requireMethod(`client of ${file}`, client, 'getTransaction', 'made by transferClient()');
  requireMethod(`receiver of ${file}`, receiver, 'inspect', 'made by transferCallbackReceiver()');
  if (callbackUrl !== undefined && typeof callbackUrl !== 'string' && typeof callbackUrl !== 'function') {
    throw new UsageError(`Expected the callbackUrl of ${file} to be a URL, or a function that returns one.`);
  }
  try {
    if (callbackHeaders !== undefined) requireHeaders(callbackHeaders, 'callbackHeaders');
  } catch (error) {
    const invalid = error as TransferCallbackError;
    throw new UsageError(describeInvalid(`the ${String(invalid.option)} of ${file}`, invalid));
  }
  return { client, receiver, callbackUrl, callbackHeaders } as App;
}

/**
 * Loads the client and the receiver of the app. Throws UsageError, also for a store in the memory of the app: `instead` is
 * the function to call there.
 */
export async function connectApp(config: string | undefined, instead: string): Promise<ConnectedApp> {
  const file = findConfigFile(config);
  if (file === undefined) throw new UsageError(`Expected ${configFile} in the working directory. ${example}`);
  const { client, receiver } = await loadApp(file);
  if (client === undefined || receiver === undefined) {
    throw new UsageError(`Expected ${file} to export client and receiver. ${example}`);
  }
  // In this process it is empty, as if nothing had been handled.
  if (receiver.options.store.processLocal === true) {
    throw new UsageError(`Expected a store that processes share, got memoryStore(). Call \`${instead}\` in the app.`);
  }
  return { client, receiver };
}

function requireMethod(name: string, value: unknown, method: string, expected: string): void {
  if (value === undefined || hasMethods(value, method)) return;
  throw new UsageError(`Expected the ${name} to be ${expected}.`);
}
