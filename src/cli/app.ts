import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { inspectTransfer, type TransferClient, type TransferInspection } from '../client/index.js';
import { hasMethods } from '../core/checks.js';
import { text, UsageError } from './arguments.js';
import { findInEnvironment, storeTimeoutMs, type App } from './environment.js';
import { messageOf } from './terminal.js';

/** The option of every command that uses the app. */
export const appOptions = { config: text } as const;

export const appHelp = `  --config FILE              A module that exports your app's own \`client\`, and
                             its \`receiver\` or \`store\`. Default: the file
                             transfer-callbacks.config.js, .mjs or .cjs of the
                             working directory, if there is one`;

export const environmentHelp = `Environment, without such a file:
  TRANSFER_SERVICE_URL       Where the service is
  TRANSFER_API_KEY           The merchant's key
  TRANSFER_API_SECRET        Its secret`;

const fileNames = ['js', 'mjs', 'cjs'].map((extension) => `transfer-callbacks.config.${extension}`);

/** Finds what the commands use, in the file of the app or in the environment. Throws UsageError. */
export async function findApp(given: string | undefined): Promise<App> {
  // The value is not shown: a URL with a password may have been given by mistake.
  if (given !== undefined && !existsSync(given)) throw new UsageError('Expected --config to name a file that exists.');
  const file = given ?? fileNames.find((name) => existsSync(name));
  return file === undefined ? findInEnvironment() : loadApp(file);
}

/** Returns the client of the app. Throws UsageError if it has none. */
export function requireClient({ client }: App): TransferClient {
  if (client !== undefined) return client;
  throw new UsageError(
    'Expected TRANSFER_SERVICE_URL, TRANSFER_API_KEY and TRANSFER_API_SECRET in the environment, or a client in ' +
      'transfer-callbacks.config.js.',
  );
}

/** How long the service may take before a line reports that it is waited for, in milliseconds. */
const patienceMs = 3_000;

/** Reads what became of a transfer, at the service and in the store of the app. */
export async function inspectWithApp(
  id: string,
  { client, receiver, store, serviceName }: App,
): Promise<TransferInspection> {
  const notice = setTimeout(() => {
    process.stderr.write(`Still waiting for ${serviceName ?? 'the service'}, which is asked up to 3 times.\n`);
  }, patienceMs);
  try {
    return await inspectTransfer({ id, client, receiver, store, storeTimeoutMs });
  } finally {
    clearTimeout(notice);
  }
}

async function loadApp(file: string): Promise<App> {
  const { client, receiver, store } = await loadExports(file);
  requireMethod(`client of ${file}`, client, 'getTransaction', 'made by transferClient()');
  requireMethod(`receiver of ${file}`, receiver, 'inspect', 'made by transferCallbackReceiver()');
  requireMethod(`store of ${file}`, store, 'read', 'a store that has the method read');
  if (client === undefined && receiver === undefined && store === undefined) {
    throw new UsageError(`Expected ${file} to export client, and receiver or store.`);
  }
  // A receiver has the store, and the schema too.
  return { client, ...(receiver === undefined ? { store } : { receiver }) } as App;
}

async function loadExports(file: string): Promise<Record<string, unknown>> {
  try {
    const loaded = (await import(pathToFileURL(resolve(file)).href)) as Record<string, unknown>;
    // A module in CommonJS may have its exports in `default` only.
    return { ...(loaded.default as object | undefined), ...loaded };
  } catch (error) {
    throw new UsageError(`${file} cannot be loaded: ${messageOf(error).replaceAll('`', '"')}`);
  }
}

function requireMethod(name: string, value: unknown, method: string, expected: string): void {
  if (value === undefined || hasMethods(value, method)) return;
  throw new UsageError(`Expected the ${name} to be ${expected}.`);
}
