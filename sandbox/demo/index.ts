import { once } from 'node:events';
// The receiver and the sandbox at work together: `npm run demo` in a clone. With `-- --open` it shows the transfers in the console.
import { transferService } from 'transfer-callbacks/client';
import { transferSandbox } from 'transfer-sandbox';
import { paint, print } from '../../src/cli/terminal.js';
import { openInBrowser } from '../src/cli/browser.js';
import { startMerchant } from './merchant.js';
import { observe, scenes, type Cells, type Observed, type Scene } from './scenes.js';

/** Plays every scene, and resolves with the exit code: 1 if one is not as designed. With `open` it runs until SIGINT or SIGTERM. */
async function run(open: boolean): Promise<number> {
  const merchant = await startMerchant();
  const sandbox = await transferSandbox({ speed: 1_000, finalAfterMs: 20_000 });
  const client = transferService({ baseUrl: sandbox.baseUrl, ...sandbox.keys.valid });

  print(greeting);
  const startedAt = performance.now();
  let failures = 0;
  for (const scene of scenes) {
    const observed = await observe(scene, { merchant, sandbox, client });
    if (!observed.isAsExpected) failures += 1;
    print(row(scene, observed));
  }
  print(`\n${failures === 0 ? success(performance.now() - startedAt) : failure(failures)}`);

  if (open) {
    const stopped = Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
    const consoleUrl = String(sandbox.consoleUrl);
    print(
      `  Console     ${paint('cyan', consoleUrl)}\n\nIt lists the transfers, but not the forgery. Ctrl+C ends it.\n`,
    );
    openInBrowser(consoleUrl);
    await stopped;
  }
  merchant.close();
  await sandbox.close();
  return failures === 0 ? 0 : 1;
}

/** In 80 columns with the sign before them. */
const widths = [19, 13, 15, 25];

function toLine(cells: readonly string[]): string {
  return cells
    .map((cell, column) => cell.padEnd(widths[column] ?? 0))
    .join('  ')
    .trimEnd();
}

const greeting = `A merchant creates transfers at a sandbox of the service and receives their
callbacks. The service makes up to 4 attempts; the pauses between them, of 30,
60 and 120 s, take as many milliseconds here. Below: the response to each
attempt, what the handlers did, and how each delivery ended.

  ${toLine(['Transfer', 'Attempts', 'Handlers', 'Outcome'])}
  ${paint('dim', toLine(widths.map((width) => '─'.repeat(width))))}
`;

/** One row; if something else was expected, with that below it. */
function row({ title, expected }: Scene, { cells, isAsExpected }: Observed): string {
  const line = (first: string, rest: Cells): string => toLine([first, ...rest]);
  if (isAsExpected) return `${paint('green', '✓')} ${line(title, cells)}\n`;
  return `${paint('red', '✗')} ${line(title, cells)}\n  ${paint('red', line('  expected', expected))}\n`;
}

function success(tookMs: number): string {
  return `${paint('green', `All ${scenes.length} are as designed`)}, in ${Math.round(tookMs)} ms. What was acknowledged had been
handled, once. Without the token nothing was handled. Reconciliation found the
outcome of which no callback came: silence is no failure.

  npm run demo -- --open                       the transfers in the console
  npx transfer-sandbox --open                  the service, for your own app
  npx transfer-sandbox trigger flip --to URL   one scenario against it, for CI

`;
}

function failure(failures: number): string {
  return `${paint('red', `${failures} of ${scenes.length} are not as designed.`)}\n`;
}

process.exitCode = await run(process.argv.includes('--open'));
