import type { TransferClient } from '../client.js';
import type { TransferCallbackReceiver } from '../node.js';
import { text, UsageError } from './arguments.js';
import { configFile, findConfigFile, loadExports } from './config-file.js';

/** The parts of an app with which its transfers are inspected and reconciled. */
export interface ConnectedApp {
  /** `undefined` if the service of the receiver was defined: that is asked. */
  readonly client: TransferClient | undefined;
  readonly receiver: TransferCallbackReceiver;
  /** The lists of transfers that the app exports, or functions that return them. Not checked. */
  readonly pending: unknown;
  readonly paid: unknown;
}

/** The option of every command that uses the app. */
export const appOptions = { config: text } as const;

export const appHelp = `  --config FILE              A module that exports the \`receiver\` of your app,
                             and its \`client\` unless the receiver has a
                             \`service\`. Default:
                             ${configFile}, .js or .cjs`;

const example = `For example:

  import { transferClient } from 'transfer-callbacks/client';
  const { TRANSFER_API_KEY: apiKey, TRANSFER_API_SECRET: apiSecret } = process.env;
  export const client = transferClient({ baseUrl: 'https://service.example/api', apiKey, apiSecret });
  export { receiver } from './dist/payouts.js';

A receiver with a \`service\` that can be asked needs no client.`;

/**
 * Loads the receiver of the app, and its client and its lists. Throws UsageError, even for a store in the memory of the
 * app: `instead` is the function to call there.
 */
export async function connectApp(config: string | undefined, instead: string): Promise<ConnectedApp> {
  const file = findConfigFile(config);
  if (file === undefined) throw new UsageError(`Expected ${configFile} in the working directory. ${example}`);
  const { client, receiver, pending, paid } = (await loadExports(file)) as Partial<ConnectedApp>;
  requireParts(`client of ${file}`, client, 'transferClient()', ['getTransaction']);
  requireParts(`receiver of ${file}`, receiver, 'transferCallbackReceiver()', [
    'receive',
    'inspect',
    'close',
    'options',
  ]);
  const service = receiver?.options.service;
  const isDefined = service?.meanings !== undefined;
  if (receiver === undefined || (client === undefined && !isDefined)) {
    throw new UsageError(`Expected ${file} to export client and receiver. ${example}`);
  }
  if (isDefined && service.queryCallback === undefined) {
    throw new UsageError(
      `Expected the \`service\` of the receiver of ${file} to have a \`query\`: it cannot be asked.`,
    );
  }
  if (isDefined && client !== undefined) {
    throw new UsageError(`Expected ${file} to export no client: the \`service\` of its receiver is asked.`);
  }
  // In this process it is empty, as if nothing had been handled.
  const { store } = receiver.options as Partial<typeof receiver.options>;
  if (store?.processLocal === true) {
    throw new UsageError(`Expected a store that processes share, got memoryStore(). Call \`${instead}\` in the app.`);
  }
  return { client, receiver, pending, paid };
}

/** Throws UsageError if `value` lacks one of its parts. An app may make some of them by hand. */
function requireParts(name: string, value: unknown, maker: string, parts: readonly string[]): void {
  if (value === undefined) return;
  const known = (value ?? {}) as Readonly<Record<string, unknown>>;
  const missing = parts.find((part) => known[part] === undefined);
  if (missing === undefined) return;
  throw new UsageError(`Expected the ${name} to be made by ${maker}. It has no \`${missing}\`.`);
}
