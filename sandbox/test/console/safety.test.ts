import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { create, startMerchant, startSandbox } from '../service/support.js';
import { browser, openConsole, shows } from './support.js';

// The page does no harm: with text of others, for pages of others, with secrets, and in a shell.

test('text of others is text: an externalId, a response, a reason', async () => {
  const hostile = '<img src=x onerror="document.title=1"><script>alert(1)</script>';
  const { url } = await startMerchant((_received, _count, response) => {
    response.writeHead(500).end(JSON.stringify({ message: hostile, body: hostile }));
  });
  const sandbox = await startSandbox({ clock: 'manual', callbackUrl: url });
  await create(sandbox, { externalId: hostile, currency: hostile, provider: hostile });
  await sandbox.advance(1_000);
  const page = await openConsole(sandbox);
  await shows(page, '500');
  expect(await page.locator('#name').innerText()).toBe(hostile);
  expect(await page.locator('img, #rows script, article script').count()).toBe(0);
});

test('a page of another origin can neither read the console nor write to it', async () => {
  const { url, received } = await startMerchant((_received, _count, response) => {
    response.writeHead(200, { 'Content-Type': 'text/html' }).end('<!doctype html><title>other</title>');
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

test('the form hides a secret that was given, and on other machines asks for it', async () => {
  const own = await openConsole(await startSandbox({ apiSecret: 'given-secret' }));
  expect(await own.getByText('given-secret').first().isVisible()).toBe(false);
  await own.getByText('Show', { exact: true }).click();
  await own.locator('#secret').getByText('given-secret').waitFor();

  const sandbox = await startSandbox({ host: '0.0.0.0', apiSecret: 'given-secret', clock: 'manual' });
  const page = await openConsole(sandbox);
  expect(await page.content()).not.toContain('given-secret');
  await page.getByLabel('API secret').fill('given-secret');
  await page.getByLabel('Callbacks go to').fill('');
  await page.getByRole('button', { name: 'Create' }).click();
  await page.locator('#name').getByText('success-1').waitFor();
  await shows(page, 'in 1 s');
});

test('a transfer gives the command of an attempt, quoted for a shell', async () => {
  const { url } = await startMerchant([500]);
  const callbackHeaders = { 'X-Token': "it's" };
  const sandbox = await startSandbox({ clock: 'manual', callbackUrl: `${url}?a='b'`, callbackHeaders });
  await create(sandbox, { externalId: "success-'; touch /tmp/x; '" });
  await sandbox.advance(1_000);
  const page = await openConsole(sandbox, { permissions: ['clipboard-read', 'clipboard-write'] });
  const copy = async (name: string): Promise<string> => {
    await page.evaluate("document.getElementById('status').textContent = ''");
    await page.getByRole('button', { name }).click();
    await page.getByRole('status').getByText('Copied.').waitFor();
    return page.evaluate('navigator.clipboard.readText()');
  };
  const [attempt] = sandbox.attempts;
  const { stdout } = await promisify(execFile)('sh', [
    '-c',
    `curl() { printf '%s\\n' "$@"; }\n${await copy('Copy curl')}`,
  ]);
  expect(stdout.trimEnd().split('\n')).toEqual([
    ...['-i', `${url}?a='b'`, '-H', "X-Token: it's", '-H', 'Content-Type: application/json'],
    ...['--data-binary', attempt?.body],
  ]);
  expect(await copy('Copy id')).toBe(attempt?.transferId);
});
