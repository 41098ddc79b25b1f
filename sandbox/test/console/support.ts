import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFinished, vi } from 'vitest';
import type { TransferSandbox } from 'transfer-sandbox';
import { startReceiver, type MerchantOptions } from '../service/support.js';
import { startBrowser } from '../../../test/support/helpers/browser.js';

vi.setConfig({ testTimeout: 90_000, hookTimeout: 90_000 });

/** The browser of the test file. */
export let browser: Browser;
beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(() => browser.close());

/** Opens the console of a sandbox. When the test ends, nothing may have gone wrong in the page. */
export async function openConsole({ consoleUrl }: TransferSandbox, options?: BrowserContextOptions) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(30_000);
  const problems = watch(page, new URL(String(consoleUrl)).origin);
  onTestFinished(async () => {
    await context.close();
    expect(problems).toEqual([]);
  });
  await page.goto(String(consoleUrl));
  await page.getByText('● live').waitFor();
  return page;
}

/** Errors, violations of the policy, and requests to another origin. A test may remove those that it provokes. */
function watch(page: Page, origin: string): string[] {
  const problems: string[] = [];
  page.on('pageerror', ({ message }) => problems.push(message));
  page.on('console', (message) => {
    // Chromium reports a response that is an error, and a stream that ended; both are what the tests provoke.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
      problems.push(message.text());
  });
  page.on('request', (request) => {
    if (new URL(request.url()).origin !== origin) problems.push(`a request to ${request.url()}`);
  });
  return problems;
}

/** A merchant with the real receiver, whose handlers do nothing. Resolves with the address of its callbacks. */
export const startCallbacks = async (options?: MerchantOptions): Promise<string> =>
  `${await startReceiver(options)}/callbacks`;

export function failingHandler(): never {
  throw new Error('The database is down');
}

/** The rows of the list, each as its text. */
export const rows = (page: Page) => page.locator('#rows tr').allInnerTexts();

/** A status may also be part of a port within a request that is folded away: only what is seen counts. */
export const shows = (page: Page, text: string | RegExp) =>
  page.locator('#timeline').getByText(text).filter({ visible: true }).first().waitFor();

export async function skip(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Skip to next' }).click();
}
