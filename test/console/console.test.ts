import { execFile } from 'node:child_process';
import { readdir, readFile, stat } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { promisify } from 'node:util';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { transferSandbox } from 'transfer-callbacks/sandbox';
import { create, startMerchant, startSandbox } from '../sandbox/support.js';
import { startBrowser } from '../support/browser.js';
import { functionRuns, openConsole, startReceiver } from './support.js';

vi.setConfig({ testTimeout: 90_000, hookTimeout: 90_000 });
const soon = { timeout: 30_000 };

let browser: Browser;
beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(() => browser.close());

/** The rows of the list, each as its text. */
const rows = (page: Page) => page.locator('#rows tr').allInnerTexts();

const shows = (page: Page, text: string | RegExp) => page.locator('#timeline').getByText(text).first().waitFor();

async function skip(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Skip to next' }).click();
}

describe('a transfer', () => {
  test('is created with the form, and is seen to become acknowledged', async () => {
    const sandbox = await startSandbox({ callbackUrl: await startReceiver(), finalAfterMs: 0 });
    const page = await openConsole(browser, sandbox);
    await page.getByRole('heading', { name: 'No transfers yet' }).waitFor();
    await page.getByRole('radio', { name: /^failed/ }).check();
    expect(await page.getByLabel('externalId').inputValue()).toBe('failed-1');
    await page.getByRole('button', { name: 'Create' }).click();
    await shows(page, 'Your handler ran and succeeded.');
    expect(await rows(page)).toEqual([expect.stringMatching(/^failed-1\s+FAILED\s+✓ acknowledged, attempt 1/)]);
    expect(sandbox.transfers()).toMatchObject([{ externalId: 'failed-1', delivered: true }]);
    expect(await page.title()).toContain('failed-1');
  });

  test('of a merchant that fails has a hint, the body of the response and the next attempt, until it is given up', async () => {
    const callbackUrl = await startReceiver(() => true);
    const sandbox = await startSandbox({ clock: 'manual', callbackUrl });
    const page = await openConsole(browser, sandbox);
    await create(sandbox, { externalId: 'success-1' });
    await shows(page, 'in 1 s');
    await skip(page);
    await shows(page, 'Your handler threw. See the log of your app.');
    await shows(page, '"message":"The callback could not be handled."');
    await shows(page, 'in 30 s');
    for (const number of [2, 3, 4]) {
      await skip(page);
      await vi.waitFor(() => {
        expect(sandbox.attempts).toHaveLength(number);
      }, soon);
    }
    await shows(page, '500, gave up after attempt 4');
    expect(await page.getByRole('button', { name: 'Skip to next' }).isDisabled()).toBe(true);
    expect(await rows(page)).toEqual([expect.stringContaining('✗ 500, gave up after attempt 4')]);
    await vi.waitFor(async () => {
      expect(await page.getByRole('status').innerText()).toMatch(/^success-1: .*answered 500$/);
    }, soon);
  });

  test('is resent and contradicted, with both sides of the conflict', async () => {
    const sandbox = await startSandbox({ clock: 'manual', callbackUrl: await startReceiver() });
    await create(sandbox, { externalId: 'success-1' });
    await sandbox.advance(1_000);
    const page = await openConsole(browser, sandbox);
    await page.getByRole('button', { name: 'Resend' }).click();
    await shows(page, 'Handled before: your handler did not run again.');
    const questions: string[] = [];
    page.on('dialog', (dialog) => {
      questions.push(dialog.message());
      void (questions.length === 1 ? dialog.dismiss() : dialog.accept());
    });
    await page.getByRole('button', { name: 'Contradict' }).click();
    await page.getByRole('button', { name: 'Contradict' }).click();
    await shows(page, '422');
    expect(questions).toEqual(Array(2).fill(expect.stringContaining('Announce FAILED under the same id?')));
    expect(await page.getByRole('row', { name: 'handled before' }).innerText()).toMatch(
      /SUCCESS\s+15000 XAF\s+success-1/,
    );
    expect(await page.getByRole('row', { name: 'announced now' }).innerText()).toMatch(
      /FAILED\s+15000 XAF\s+success-1/,
    );
    expect(sandbox.attempts).toHaveLength(3);
  });

  test('in each scenario stands in the list as it should', async () => {
    const { url } = await startMerchant();
    const sandbox = await startSandbox({ clock: 'manual', callbackUrl: url });
    const page = await openConsole(browser, sandbox);
    for (const name of ['no-callback', 'late-callback', 'duplicate', 'burst', 'lost-attempts', 'malformed']) {
      await create(sandbox, { externalId: `${name}-1` });
    }
    await sandbox.advance(1_000);
    await create(sandbox, { externalId: 'success-2' });
    await vi.waitFor(async () => {
      expect((await rows(page)).map((row) => row.replaceAll(/\s+/g, ' ').trim())).toEqual([
        'success-2 pending ◌ final at 10:30:02 in 1 s',
        'malformed-1 SUCCESS ✓ acknowledged, attempt 1',
        'lost-attempts-1 SUCCESS ◌ lost on the way, attempt 2 at 10:30:31 in 30 s',
        'burst-1 SUCCESS ✓ acknowledged, attempt 10',
        'duplicate-1 SUCCESS ✓ acknowledged, attempt 2 at 10:30:31 in 30 s',
        'late-callback-1 SUCCESS ◌ attempt 1 at 10:40:01 in 10 min',
        'no-callback-1 SUCCESS – no callback is sent',
      ]);
    }, soon);
    await page.getByRole('link', { name: 'burst-1' }).click();
    await shows(page, 'attempt 10');
    await page.getByRole('link', { name: 'no-callback-1' }).click();
    await shows(page, 'A query still shows the outcome');
  });

  test('of ten attempts is told of in one sentence', async () => {
    const { url } = await startMerchant([500]);
    const sandbox = await startSandbox({ clock: 'manual', callbackUrl: url });
    const page = await openConsole(browser, sandbox);
    await create(sandbox, { externalId: 'burst-1' });
    await sandbox.advance(1_000);
    await page
      .getByRole('status')
      .getByText(/^burst-1: 10 attempts, (1 answered 500, )?9 answered 200(, 1 answered 500)?$/)
      .waitFor();
  });

  test('is queried as a merchant does, and shows its payload', async () => {
    const sandbox = await startSandbox({ clock: 'manual' });
    await create(sandbox, { externalId: 'query-fails-1' });
    await sandbox.advance(1_000);
    const page = await openConsole(browser, sandbox);
    const answer = page.locator('#answer');
    for (const expected of ['500', '500', '200']) {
      await page.getByRole('button', { name: 'Query' }).click();
      await answer.getByText(new RegExp(`^${expected}\n`)).waitFor();
      await vi.waitFor(async () => {
        expect((await page.locator('#timeline li').allInnerTexts()).join()).toMatch(
          expected === '200' ? 'queried\nSUCCESS' : 'queried\n500',
        );
      }, soon);
    }
    await shows(page, '500, 2 times');
    await page.getByText('Payload').click();
    expect(await page.locator('#payload').innerText()).toContain('"event": "transfer.success"');
  });

  test('gives the command and the test of an attempt, quoted for a shell', async () => {
    const { url } = await startMerchant([500]);
    const callbackHeaders = { 'X-Token': "it's" };
    const sandbox = await startSandbox({ clock: 'manual', callbackUrl: `${url}?a='b'`, callbackHeaders });
    await create(sandbox, { externalId: "success-'; touch /tmp/x; '" });
    await sandbox.advance(1_000);
    const page = await openConsole(browser, sandbox, { permissions: ['clipboard-read', 'clipboard-write'] });
    const copy = async (name: string): Promise<string> => {
      await page.evaluate("document.getElementById('status').textContent = ''");
      await page.getByRole('button', { name }).click();
      await page.getByRole('status').getByText('Copied.').waitFor();
      return page.evaluate('navigator.clipboard.readText()');
    };
    const [attempt] = sandbox.attempts;
    const { stdout } = await promisify(execFile)('sh', [
      '-c',
      `curl() { printf '%s\\n' "$@"; }\n${await copy('copy curl')}`,
    ]);
    expect(stdout.trimEnd().split('\n')).toEqual([
      ...['-i', `${url}?a='b'`, '-H', "X-Token: it's", '-H', 'Content-Type: application/json'],
      ...['--data-binary', attempt?.body],
    ]);
    const code = await copy('copy test');
    expect(code).toContain(
      `await deliver(app, ${JSON.stringify(attempt?.body)}, { path: '/callbacks', retry: false })`,
    );
    expect(code).toContain('expect(acknowledged).toBe(true);');
    expect(await copy('copy id')).toBe(attempt?.transferId);
  });

  test('that the sandbox does not have is said to be missing', async () => {
    const sandbox = await startSandbox();
    const page = await openConsole(browser, sandbox);
    await page.goto(`${String(sandbox.consoleUrl)}#/transfer/unknown`);
    await page.getByText('No such transfer').waitFor();
  });
});

describe('by keyboard', () => {
  test('all of it works, and the focus stays in its place through updates', async () => {
    const { url } = await startMerchant([500]);
    const sandbox = await startSandbox({ clock: 'manual', callbackUrl: url });
    for (const externalId of ['one', 'two', 'three']) await create(sandbox, { externalId });
    const page = await openConsole(browser, sandbox);
    const focused = () => page.evaluate<string>('document.activeElement.textContent || document.activeElement.id');
    await page.locator('#list').focus();
    const press = (key: string) => page.keyboard.press(key);
    await press('ArrowDown');
    await press('ArrowDown');
    expect(await focused()).toBe('two');
    await press('Enter');
    await page.locator('#name').getByText('two').waitFor();
    await press('s');
    await vi.waitFor(() => {
      expect(sandbox.attempts).toHaveLength(3);
    }, soon);
    await vi.waitFor(async () => {
      expect((await rows(page)).filter((row) => row.includes('✓'))).toHaveLength(2);
    }, soon);
    expect(await focused()).toBe('two');
    await press('r');
    await shows(page, 'resent');
    await press('ArrowUp');
    await press('ArrowUp');
    expect(await focused()).toBe('filter');
    await page.locator('#detail').focus();
    await press('?');
    await page.getByText('outside a field').waitFor();
    await press('Escape');
    await press('n');
    await page.getByRole('heading', { name: 'New transfer' }).waitFor();
    expect(await focused()).toBe('New transfer');
    await press('/');
    expect(await focused()).toBe('filter');
  });

  test('letters in a field are letters, and the filter finds by name and by what became of it', async () => {
    const { url } = await startMerchant();
    const sandbox = await startSandbox({ clock: 'manual', callbackUrl: url });
    for (const externalId of ['nrs-1', 'other-2']) await create(sandbox, { externalId });
    const page = await openConsole(browser, sandbox);
    await page.locator('#filter').pressSequentially('nrs');
    expect(await page.locator('#filter').inputValue()).toBe('nrs');
    expect(await page.locator('#rows tr:visible').allInnerTexts()).toEqual([expect.stringContaining('nrs-1')]);
    await page.getByRole('heading', { name: 'Transfers (1 of 2)' }).waitFor();
    await page.locator('#filter').fill('nothing like it');
    await page.getByText('None to show.').waitFor();
    expect(sandbox.attempts).toEqual([]);
  });
});

describe('the form', () => {
  test('keeps a name that was typed, which chooses the scenario, and says why a creation is refused', async () => {
    const sandbox = await startSandbox({ clock: 'manual' });
    const page = await openConsole(browser, sandbox);
    await page.getByLabel('externalId').fill('flip-9');
    expect(await page.getByRole('radio', { name: 'flip' }).isChecked()).toBe(true);
    await page.getByLabel('externalId').fill('order-9');
    expect(await page.getByRole('radio', { checked: true }).count()).toBe(0);
    await page.getByLabel('Callbacks go to').fill('http://example.com/');
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByRole('alert').getByText('Expected `callbackUrl` to be a URL on this machine').waitFor();
    expect(await page.getByLabel('externalId').inputValue()).toBe('order-9');
    await page.getByText('The same as a command').click();
    expect(await page.locator('#curl').innerText()).toContain("-H 'x-api-key: sandbox-key'");
  });

  test('hides a secret that was given, and on other machines asks for it', async () => {
    const own = await openConsole(browser, await startSandbox({ apiSecret: 'given-secret' }));
    expect(await own.getByText('given-secret').first().isVisible()).toBe(false);
    await own.getByText('show', { exact: true }).click();
    await own.locator('#secret').getByText('given-secret').waitFor();

    const sandbox = await startSandbox({ host: '0.0.0.0', apiSecret: 'given-secret', clock: 'manual' });
    const page = await openConsole(browser, sandbox);
    expect(await page.content()).not.toContain('given-secret');
    await page.getByLabel('API secret').fill('given-secret');
    await page.getByLabel('Callbacks go to').fill('');
    await page.getByRole('button', { name: 'Create' }).click();
    await page.locator('#name').getByText('success-1').waitFor();
    await shows(page, 'in 1 s');
  });
});

describe('the stream', () => {
  test('comes back after the sandbox has restarted on its port, with the transfers of the new one', async () => {
    const first = await transferSandbox({ clock: 'manual' });
    await create(first, { externalId: 'of-the-first' });
    const page = await openConsole(browser, first);
    await page.locator('#name').getByText('of-the-first').waitFor();
    await first.close();
    await page.getByText('◌ reconnecting').waitFor();
    await skip(page);
    await page.getByRole('status').getByText('The sandbox does not respond.').waitFor();
    const second = await startSandbox({
      port: Number(new URL(first.baseUrl).port),
      clock: 'manual',
      apiKey: 'new-key',
    });
    await create2(second.baseUrl);
    await page.locator('#name').getByText('of-the-second').waitFor();
    expect(await rows(page)).toEqual([expect.stringContaining('of-the-second')]);
  });

  test('is closed while the page is hidden, and opened again when it is shown', async () => {
    const sandbox = await startSandbox({ clock: 'manual' });
    const page = await openConsole(browser, sandbox);
    const setHidden = (isHidden: boolean) =>
      page.evaluate(`Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true });
        document.dispatchEvent(new Event('visibilitychange'))`);
    const closed = page.waitForEvent('requestfailed', (request) => request.url().endsWith('/events'));
    await setHidden(true);
    await closed;
    await create(sandbox, { externalId: 'while-hidden' });
    expect(await rows(page)).toEqual([]);
    await setHidden(false);
    await page.locator('#name').getByText('while-hidden').waitFor();
  });

  test('shows the newest 200 transfers of more', async () => {
    const sandbox = await startSandbox({ clock: 'manual' });
    for (let made = 1; made <= 200; made += 1) await create(sandbox, { externalId: `t-${made}` });
    const page = await openConsole(browser, sandbox);
    await create(sandbox, { externalId: 't-201' });
    await page.getByRole('heading', { name: 'Transfers (200 of 201)' }).waitFor();
    const shown = await rows(page);
    expect(shown).toHaveLength(200);
    expect([shown[0], shown.at(-1)].map((row) => row?.split(/\s/)[0])).toEqual(['t-201', 't-2']);
  });
});

/** Creates a transfer at a sandbox whose key is another. */
async function create2(baseUrl: string): Promise<void> {
  const headers = { 'Content-Type': 'application/json', 'x-api-key': 'new-key', 'x-api-secret': 'sandbox-secret' };
  const body = JSON.stringify({ externalId: 'of-the-second' });
  expect((await fetch(`${baseUrl}/transactions/transfer`, { method: 'POST', headers, body })).status).toBe(201);
}

test('text of strangers is text: an externalId, a response, a reason', async () => {
  const hostile = '<img src=x onerror="document.title=1"><script>alert(1)</script>';
  const { url } = await startMerchant((_received, _count, response) => {
    response.writeHead(500).end(JSON.stringify({ message: hostile, body: hostile }));
  });
  const sandbox = await startSandbox({ clock: 'manual', callbackUrl: url });
  await create(sandbox, { externalId: hostile, currency: hostile, provider: hostile });
  await sandbox.advance(1_000);
  const page = await openConsole(browser, sandbox);
  await shows(page, '500');
  expect(await page.locator('#name').innerText()).toBe(hostile);
  expect(await page.locator('img, #rows script, article script').count()).toBe(0);
});

test('a page of another origin can neither read the console nor write to it', async () => {
  const { url, received } = await startMerchant((_received, _count, response) => {
    response.writeHead(200, { 'Content-Type': 'text/html' }).end('<!doctype html><title>stranger</title>');
  });
  const sandbox = await startSandbox({ clock: 'manual' });
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(url);
  const { consoleUrl } = sandbox;
  const attempt = (path: string, init: object) =>
    page.evaluate<string>(
      `fetch('${String(consoleUrl)}${path}', ${JSON.stringify(init)}).then((r) => r.type, () => 'refused')`,
    );
  expect(await attempt('events', {})).toBe('refused');
  expect(
    await attempt('advance', { method: 'POST', body: '{}', headers: { 'Content-Type': 'application/json' } }),
  ).toBe('refused');
  expect(await attempt('advance', { method: 'POST', body: '{"ms":5000}', mode: 'no-cors' })).toBe('refused');
  await context.close();
  expect(received.length).toBeGreaterThan(0);
  await create(sandbox, {});
  expect(sandbox.transfers()[0]?.createdAtMs).toBe(Date.parse('2026-01-15T10:30:00.000Z'));
});

describe('for everyone', () => {
  const axe = createRequire(import.meta.url).resolve('axe-core/axe.min.js');

  test.each([
    ['light', 1280],
    ['dark', 1280],
    ['light', 320],
    ['dark', 320],
  ] as const)('axe-core finds nothing: %s, %d px wide', async (colorScheme, width) => {
    const sandbox = await startSandbox({ clock: 'manual', callbackUrl: await startReceiver() });
    for (const externalId of ['flip-1', 'lost-attempts-2']) await create(sandbox, { externalId });
    await sandbox.advance(12_000);
    // The policy would bar the injection of axe-core itself.
    const page = await openConsole(browser, sandbox, {
      bypassCSP: true,
      colorScheme,
      viewport: { width, height: 800 },
    });
    await page.addScriptTag({ path: axe });
    const check = async () => {
      const found: { violations: { id: string; nodes: { html: string }[] }[] } = await page.evaluate('axe.run()');
      expect(found.violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join()}`)).toEqual([]);
      const overflow: number = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
      expect(overflow).toBeLessThanOrEqual(0);
    };
    await check();
    await page.getByRole('link', { name: 'flip-1' }).click();
    await shows(page, '422');
    await check();
    await page.getByRole('link', { name: 'New transfer' }).click();
    await page.getByLabel('externalId').waitFor();
    await check();
  });

  test('a narrow page shows the list or one transfer, with a way back', async () => {
    const sandbox = await startSandbox({ clock: 'manual' });
    await create(sandbox, { externalId: 'one' });
    const page = await openConsole(browser, sandbox, { viewport: { width: 400, height: 700 } });
    expect(await page.locator('#detail').isVisible()).toBe(false);
    await page.getByRole('link', { name: 'one' }).click();
    await page.locator('#name').getByText('one').waitFor();
    expect(await page.locator('#list').isVisible()).toBe(false);
    expect(await page.evaluate('document.activeElement.tagName')).toBe('H2');
    await page.getByRole('link', { name: 'Transfers' }).click();
    await page.locator('#list').waitFor();
  });
});

const folder = new URL('../../src/sandbox/console/', import.meta.url);

test('the files of the page have at most 36 kB, and are what the browser was given', async () => {
  const shipped = (await readdir(folder)).filter((name) => !/\.(json|d\.ts)$/.test(name));
  const sizes = await Promise.all(shipped.map(async (name) => (await stat(new URL(name, folder))).size));
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(36_000);
  for (const name of shipped)
    expect(await readFile(new URL(name, folder), 'utf8')).not.toMatch(/https?:\/\/(?!127\.0\.0\.1|www\.w3\.org)/);
});

// Last: it adds up the runs of all tests before. Vitest's own coverage does not see into the browser.
test('every function of the scripts of the page was run', () => {
  expect(functionRuns.size).toBeGreaterThan(40);
  const idle = [...functionRuns].filter(([, runs]) => runs === 0).map(([name]) => name);
  expect(idle).toEqual([]);
});
