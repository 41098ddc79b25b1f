import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { attemptCallback } from '../attempt/attempt.js';
import { reconcileTransfers, transferClient, type TransferClient } from '../client/index.js';
import { memoryStore, transferCallbackListener, transferCallbackReceiver, urlToken } from '../node.js';
import { transferSandbox, type SandboxAttempt, type TransferSandbox } from '../sandbox/index.js';
import { allowPositionals, flag, parseArguments, randomSeed, text, toNumber } from './arguments.js';
import { attemptRows } from './attempt-rows.js';
import { openInBrowser } from './browser.js';
import { paint, print } from './terminal.js';

export const help = `Usage: transfer-callbacks demo [options]

Runs a merchant's app and the transfer service on this machine, creates some
transfers, and shows in a page what becomes of them, until Ctrl+C. A stranger
forges a callback, and reconciliation finds the one that never comes.

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
/** Does not keep the process alive: after Ctrl+C it ends. */
const pause = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms).unref());

const forgeAfterMs = 60_000;
const reconcileAfterMs = 120_000;

/** Runs the demonstration until SIGINT or SIGTERM. */
export async function run(args: readonly string[]): Promise<number> {
  const { values, positionals } = parseArguments(args, options);
  allowPositionals(positionals, 0);
  const speed = toNumber('--speed', values.speed) ?? 5;
  const teller = new Teller();
  const merchant = await startMerchant();
  try {
    const sandbox = await transferSandbox({
      callbackUrl: merchant.callbackUrl,
      port: toNumber('--port', values.port),
      speed,
      seed: randomSeed(),
      onAttempt(attempt) {
        teller.tell(attempt.sentAtMs, toRows(attempt) + merchant.takeActs(attempt.externalId));
      },
    });
    // Before the greeting: its reader may send a signal immediately.
    const stopped = Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
    const consoleUrl = String(sandbox.consoleUrl);
    print(greeting(consoleUrl));
    if (values.open === true) openInBrowser(consoleUrl, printFailure);
    const client = transferClient({ baseUrl: sandbox.baseUrl, ...sandbox.keys.valid });
    for (const externalId of transfers) {
      await client.createTransfer({ callbackUrl: merchant.callbackUrl, externalId, amount: 15_000, currency: 'XAF' });
    }
    await Promise.race([stopped, tellStory({ sandbox, client, merchant, teller, speed })]);
    await stopped;
    await sandbox.close();
  } finally {
    teller.flush(true);
    merchant.close();
  }
  return 0;
}

interface Stage {
  readonly sandbox: TransferSandbox;
  readonly client: TransferClient;
  readonly merchant: Merchant;
  readonly teller: Teller;
  readonly speed: number;
}

/** Does what no scenario does, and sums up when nothing more is due. */
async function tellStory(stage: Stage): Promise<void> {
  const { sandbox, client, merchant, teller, speed } = stage;
  const startMs = sandbox.transfers()[0]?.createdAtMs ?? Date.now();
  await pause(forgeAfterMs / speed);
  teller.tell(startMs + forgeAfterMs, await forge(stage, startMs + forgeAfterMs));

  await pause((reconcileAfterMs - forgeAfterMs) / speed);
  // At a high speed this machine may be behind.
  while (sandbox.transfers().some(({ state }) => state === 'pending')) await pause(10);
  // Reconciliation leaves young transfers alone. By its clock, which is that of the machine, these are seconds old.
  const pending = transfers.filter((id) => !merchant.handled.has(id)).map((id) => ({ id, createdAt: 0 }));
  const { processed } = await reconcileTransfers({ client, receiver: merchant.receiver, pending });
  const names = pending.map(({ id }) => id).join(', ');
  const found = `No callback came for ${names}. Silence is not failure:\n          the merchant asks the service, and handles ${processed}.`;
  const acts = pending.map(({ id }) => merchant.takeActs(id)).join('');
  teller.tell(startMs + reconcileAfterMs, `${toTime(startMs + reconcileAfterMs)}  ${found}\n${acts}`);

  await sandbox.idle();
  teller.flush(true);
  print(summary(sandbox, merchant));
}

/** Announces the failure of a transfer that has succeeded, without the token. Resolves with what came of it. */
async function forge({ sandbox, merchant }: Stage, atMs: number): Promise<string> {
  const [first] = sandbox.transfers();
  const data = { ...first?.callback?.data, id: crypto.randomUUID(), status: 'FAILED', failureReason: 'Forged' };
  const response = await attemptCallback(merchant.publicUrl, JSON.stringify({ event: 'transfer.failed', data }));
  const result = 'status' in response ? String(response.status) : response.error;
  return (
    `${toTime(atMs)}  A stranger announces FAILED for ${String(first?.externalId)}, without the token\n` +
    `          ${paint('dim', '←')} ${paint('red', result)}  Nothing is refunded.\n`
  );
}

type Merchant = Awaited<ReturnType<typeof startMerchant>>;

/** Starts a merchant's app that acts on every callback once, and notes what it does. */
async function startMerchant() {
  const handled = new Map<string, number>();
  const acts = new Map<string, string>();
  let hasFailed = false;
  function act(externalId: string, what: string): void {
    acts.set(externalId, `${acts.get(externalId) ?? ''}          ${what} for ${externalId}\n`);
  }
  function book(
    { externalId, amount, currency }: { externalId: string; amount: number; currency: string },
    verb: string,
  ) {
    handled.set(externalId, (handled.get(externalId) ?? 0) + 1);
    act(externalId, `${verb} ${amount} ${currency}`);
  }
  const receiver = transferCallbackReceiver({
    store: memoryStore(),
    onSuccess({ data }) {
      if (data.externalId.startsWith('handler-fails') && !hasFailed) {
        hasFailed = true;
        act(data.externalId, 'The handler throws');
        throw new Error('The database is down');
      }
      book(data, 'Paid');
    },
    onFailed({ data }) {
      book(data, 'Refunded');
    },
    logger: false,
  });
  const token = crypto.randomUUID();
  const server = createServer(transferCallbackListener({ receiver, verify: urlToken(token) })).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const publicUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/callbacks/transfers`;
  return {
    receiver,
    publicUrl,
    callbackUrl: `${publicUrl}/${token}`,
    /** How often each transfer was paid or refunded. */
    handled,
    /** Returns what was done for a transfer since the last call. */
    takeActs(externalId: string): string {
      const text = acts.get(externalId) ?? '';
      acts.delete(externalId);
      return text;
    },
    close(): void {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** How long lines are gathered before they are printed, in milliseconds of real time. */
const gatherMs = 500;

/** Prints in the order of the sandbox's clock. A response that takes long would come after those of later attempts. */
class Teller {
  #lines: { readonly atMs: number; readonly text: string; readonly toldAt: number }[] = [];
  #timer: NodeJS.Timeout | undefined;

  tell(atMs: number, text: string): void {
    this.#lines.push({ atMs, text, toldAt: performance.now() });
    this.#timer ??= setInterval(() => {
      this.flush();
    }, gatherMs / 2);
  }

  /** Prints what was told long enough ago and all that happened before it, or everything. */
  flush(everything = false): void {
    const before = everything ? Infinity : performance.now() - gatherMs;
    const untilMs = Math.max(...this.#lines.filter(({ toldAt }) => toldAt <= before).map(({ atMs }) => atMs));
    const ready = this.#lines.filter(({ atMs }) => atMs <= untilMs).sort((a, b) => a.atMs - b.atMs);
    this.#lines = this.#lines.filter(({ atMs }) => atMs > untilMs);
    print(ready.map(({ text }) => text).join(''));
    if (this.#lines.length > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

const toTime = (atMs: number): string => new Date(atMs).toISOString().slice(11, 19);

function toRows(attempt: SandboxAttempt): string {
  return attemptRows(attempt, toTime(attempt.sentAtMs));
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

function summary({ attempts }: TransferSandbox, { handled }: Merchant): string {
  const made = attempts.filter(({ externalId }) => transfers.includes(externalId)).length;
  const count = (times: (handled: number) => boolean): number =>
    transfers.filter((externalId) => times(handled.get(externalId) ?? 0)).length;
  return `
  Transfers  Attempts  Handled once  Twice  Never  Forgeries believed
  ${[
    String(transfers.length).padStart(9),
    String(made).padStart(8),
    String(count((times) => times === 1)).padStart(12),
    String(count((times) => times > 1)).padStart(5),
    String(count((times) => times === 0)).padStart(5),
    String((handled.get('success-1') ?? 1) - 1).padStart(18),
  ].join('  ')}

${paint('bold', 'Nothing more is due.')} In the console, forge a payload or contradict a transfer. Then:

  npx transfer-callbacks sandbox --open          the service, for your own app
  npx transfer-callbacks trigger flip --to URL   one scenario against it, for CI
  npx transfer-callbacks help                    all commands
`;
}
