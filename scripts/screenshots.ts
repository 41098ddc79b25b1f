// Makes the pictures of the console in docs/images, in light and in dark, from a run with a fixed seed and a manual
// clock.
import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';
import { memoryStore, transferCallbackListener } from 'transfer-callbacks';
import { transferService } from 'transfer-callbacks/client';
import { transferSandbox } from 'transfer-sandbox';
import { startBrowser } from '../test/support/helpers/browser.js';

const folder = fileURLToPath(new URL('../docs/images/', import.meta.url));
const port = 3000;
const callbackUrl = `http://127.0.0.1:${port}/callbacks/transfers`;

const merchant = createServer(
  transferCallbackListener({
    store: memoryStore(),
    onSuccess({ data }) {
      if (data.externalId === 'lost-attempts-42') throw new Error('The database is down');
    },
    onFailed: () => undefined,
    logger: false,
  }),
).listen(port, '127.0.0.1');
await once(merchant, 'listening');
const sandbox = await transferSandbox({ port: 4010, clock: 'manual', seed: 1, callbackUrl });
const client = transferService({ baseUrl: sandbox.baseUrl, ...sandbox.keys.valid });
const browser = await startBrowser();
await mkdir(folder, { recursive: true });

async function create(externalId: string, thenMs: number): Promise<void> {
  await client.createTransfer({ externalId, callbackUrl, amount: 15_000, currency: 'XAF' });
  await sandbox.advance(thenMs);
}

try {
  await create('no-callback-1', 2_000);
  await create('failed-7', 3_000);
  await create('flip-3', 12_000);
  await create('success-12', 5_000);
  await create('lost-attempts-42', 65_000);
  await sandbox.advance(28_000);
  for (const colorScheme of ['light', 'dark'] as const) {
    const page = await browser.newPage({ viewport: { width: 1280, height: 760 }, colorScheme });
    await page.goto(`${String(sandbox.consoleUrl)}#/`);
    await page.getByText('lost-attempts-42').first().waitFor();
    await page.getByText('● live').waitFor();
    await page.screenshot({ path: `${folder}console-${colorScheme}.png` });
    await page.close();
  }
} finally {
  await browser.close();
  await sandbox.close();
  merchant.close();
  merchant.closeAllConnections();
}
