import type { CallbackStore, TransferCallbackReceiver } from '../node.js';
import { pause } from '../lib/deadline.js';
import { text, UsageError } from './arguments.js';
import { configFile, findConfigFile, loadExports } from './config-file.js';

/** What an app exports, so that its transfers can be inspected and reconciled. */
export interface ConnectedApp {
  readonly receiver: TransferCallbackReceiver;
  /** The lists of transfers that the app exports, or functions that return them. Not checked. */
  readonly pending: unknown;
  readonly paid: unknown;
}

/** The option of every command that uses the app. */
export const appOptions = { config: text } as const;

export const appHelp = `  --config FILE              A module that exports the \`receiver\` of your app.
                             Default:
                             ${configFile}, .js or .cjs`;

const example = "For example: `export { receiver } from './dist/payouts.js';`";

/**
 * Loads the receiver of the app and its lists. Throws UsageError, even for a store in the memory of the app: `instead`
 * is the function to call there.
 */
export async function connectApp(config: string | undefined, instead: string): Promise<ConnectedApp> {
  const file = findConfigFile(config);
  if (file === undefined) throw new UsageError(`Expected ${configFile} in ${process.cwd()}. ${example}`);
  const { receiver, pending, paid } = (await loadExports(file)) as Partial<ConnectedApp>;
  if (receiver === undefined) throw new UsageError(`Expected ${file} to export receiver. ${example}`);
  // An app may make it by hand.
  const known = receiver as Partial<typeof receiver> | null;
  const missing = (['receive', 'inspect', 'close', 'options'] as const).find((part) => known?.[part] === undefined);
  if (missing !== undefined) {
    throw new UsageError(
      `Expected the receiver of ${file} to be made by transferCallbackReceiver(). It has no \`${missing}\`.`,
    );
  }
  const { store, service } = receiver.options as Partial<typeof receiver.options>;
  if (service?.ask === undefined) {
    throw new UsageError(
      `Expected the \`service\` of the receiver of ${file} to be one that can be asked: ` +
        '`transferService({ baseUrl, apiKey, apiSecret })`, or a definition with `query`.',
    );
  }
  // In this process it is empty, as if nothing had been handled.
  if (store?.processLocal === true) {
    throw new UsageError(`Expected a store that processes share, got memoryStore(). Call \`${instead}\` in the app.`);
  }
  await waitForStore(store);
  return { receiver, pending, paid };
}

const connectingMs = 5_000;
const pauseMs = 100;

/**
 * Waits some seconds while the store fails. A client may still be connecting, and a configuration in CommonJS cannot
 * await that. If the store goes on to fail, the command shows its error.
 */
async function waitForStore(store: CallbackStore<unknown> | undefined): Promise<void> {
  const read = async (): Promise<unknown> => store?.read?.('transfer-callbacks-connecting');
  const isReady = (): Promise<boolean> =>
    read().then(
      () => true,
      () => false,
    );
  const endsAt = performance.now() + connectingMs;
  const waiting = new AbortController();
  // A client with a queue does not fail meanwhile: the command has a deadline of its own for it.
  const tooLong = pause(connectingMs, waiting).then(() => true);
  while (performance.now() < endsAt && !(await Promise.race([isReady(), tooLong]))) await pause(pauseMs);
  waiting.abort();
}
