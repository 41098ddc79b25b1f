import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { transferClient } from '../client/index.js';
import { memoryStore, transferCallbackListener } from '../node.js';
import { transferSandbox, type SandboxAttempt } from '../sandbox/index.js';
import { allowPositionals, flag, parseArguments, randomSeed, text, toNumber } from './arguments.js';
import { openInBrowser } from './browser.js';
import { attemptRows } from './attempt-rows.js';
import { paint, print } from './terminal.js';

export const help = `Usage: transfer-callbacks demo [options]

Runs a merchant's app and the transfer service on this machine, creates some
transfers, and shows in a page what becomes of them, until Ctrl+C.

  --open       Open the page in the browser
  --port N     The port of the service and its page (default: any free port)
  --speed N    How many times as fast as real time (default 5): a retry after
               30 s takes 6 s
`;

const options = { open: flag, port: text, speed: text };

/** By the beginning of its externalId each has its scenario; the handler fails once for the last. */
const transfers = [
  'success-1',
  'failed-2',
  'lost-attempts-3',
  'duplicate-4',
  'flip-5',
  'no-callback-6',
  'handler-fails-7',
];

/** Runs the demonstration until SIGINT or SIGTERM. */
export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = parseArguments(args, options);
  allowPositionals(positionals, 0);
  const merchant = await startMerchant();
  const { port } = merchant.address() as AddressInfo;
  try {
    const callbackUrl = `http://127.0.0.1:${port}/callbacks/transfers`;
    const sandbox = await transferSandbox({
      callbackUrl,
      port: toNumber('--port', values.port),
      speed: toNumber('--speed', values.speed) ?? 5,
      seed: randomSeed(),
      onAttempt: printAttempt,
    });
    // Before the greeting: its reader may send a signal immediately.
    const stopped = Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
    const consoleUrl = String(sandbox.consoleUrl);
    print(greeting(consoleUrl));
    if (values.open === true) openInBrowser(consoleUrl, printFailure);
    const client = transferClient({ baseUrl: sandbox.baseUrl, ...sandbox.keys.valid });
    for (const externalId of transfers) {
      await client.createTransfer({ callbackUrl, externalId, amount: 15_000, currency: 'XAF' });
    }
    await stopped;
    await sandbox.close();
  } finally {
    merchant.close();
    merchant.closeAllConnections();
  }
  return 0;
}

/** Starts a merchant's app that acts on every callback once, and prints what it does. */
async function startMerchant(): Promise<Server> {
  let hasFailed = false;
  const listener = transferCallbackListener({
    store: memoryStore(),
    onSuccess({ data }) {
      const fails = data.externalId.startsWith('handler-fails') && !hasFailed;
      if (fails) hasFailed = true;
      print(
        `          ${fails ? 'The handler throws' : `Paid ${data.amount} ${data.currency}`} for ${data.externalId}\n`,
      );
      if (fails) throw new Error('The database is down');
    },
    onFailed({ data }) {
      print(`          Refunded ${data.amount} ${data.currency} for ${data.externalId}\n`);
    },
    logger: false,
  });
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

function printAttempt(attempt: SandboxAttempt): void {
  print(attemptRows(attempt, new Date(attempt.plannedAtMs).toISOString().slice(11, 19)));
}

function printFailure(message: string): void {
  process.stderr.write(`No browser was opened (${message}). Open the address by hand.\n`);
}

function greeting(consoleUrl: string): string {
  return `${paint('bold', 'A merchant and the transfer service, on this machine')}

  Console     ${paint('cyan', consoleUrl)}

Open it to see what becomes of ${transfers.length} transfers, and to create more. Ctrl+C ends it.

`;
}
