import { headerToken } from 'transfer-callbacks';
import { confirmWith, transferClient } from 'transfer-callbacks/client';
import { expect, test, vi } from 'vitest';
import { create, soon, startMerchant, startSandbox } from '../sandbox/support.js';
import { openConsole, shows, startCallbacks } from './support.js';

// What the page says of the app: whether it did right, and whether it believes strangers.

test('an app that refuses a contradiction, a body cut short and another type has done right', async () => {
  const sandbox = await startSandbox({ clock: 'manual', callbackUrl: await startCallbacks() });
  for (const name of ['flip', 'malformed', 'wrong-content-type']) await create(sandbox, { externalId: `${name}-1` });
  await sandbox.advance(1_000);
  const page = await openConsole(sandbox);
  const refused = page.locator('#rows tr').filter({ hasText: /✓\s+refused rightly, attempt 2/ });
  expect(await refused.locator('a').allInnerTexts()).toEqual(['wrong-content-type-1', 'malformed-1']);
  await sandbox.advance(300_000);
  await page.locator('#rows').getByText('refused rightly, gave up after attempt 4').waitFor();
  expect(await page.locator('#rows .bad').count()).toBe(0);
  await page.getByRole('link', { name: 'flip-1' }).click();
  await page
    .locator('#timeline .what')
    .filter({ hasText: /422\s*refused rightly/ })
    .first()
    .waitFor();
  expect(await page.locator('#timeline .bad').count()).toBe(0);
});

test('an app that acknowledges a contradiction has done wrong, and a response of a stranger tells nothing of a handler', async () => {
  const { url } = await startMerchant([200, 500]);
  const sandbox = await startSandbox({ clock: 'manual', callbackUrl: url });
  const page = await openConsole(sandbox);
  await create(sandbox, { externalId: 'flip-1' });
  await sandbox.advance(1_000);
  await shows(page, 'although transfer-callbacks did not send this response');
  await create(sandbox, { externalId: 'success-2' });
  await sandbox.advance(1_000);
  await shows(page, 'Your app failed, or something before it.');
  await sandbox.advance(10_000);
  await page.locator('#rows tr').filter({ hasText: 'flip-1' }).getByText('acknowledged wrongly').waitFor();
});

test('a forgery that the app acknowledges is called one, until another payload is shown', async () => {
  const sandbox = await startSandbox({ clock: 'manual', callbackUrl: await startCallbacks() });
  await create(sandbox, { externalId: 'success-1' });
  await sandbox.advance(1_000);
  const page = await openConsole(sandbox);
  await page.getByText('Payload').click();
  const id = sandbox.transfers()[0]?.id ?? expect.fail('no transfer');
  const payload = page.getByLabel('Payload');
  await payload.fill((await payload.inputValue()).replace(id, 'an-id-of-a-stranger'));
  await page.getByRole('button', { name: 'Send', exact: true }).click();
  await page.getByText('✗ Your app acknowledged a forgery.').waitFor();
  await page.getByText('it believes everyone: see docs/security.md').waitFor();
  await page.locator('#refusal').getByText('processed').waitFor();
  // It is gone with the payload that it is about.
  await create(sandbox, { externalId: 'success-2' });
  await sandbox.advance(1_000);
  await page.locator('#name').getByText('success-2').waitFor();
  await vi.waitFor(async () => {
    expect(await payload.inputValue()).toContain('success-2');
  }, soon);
  expect(await page.locator('#forged').isVisible()).toBe(false);
});

test('a forgery has the headers of the sandbox only if they are asked for, and then proves nothing', async () => {
  const callbackHeaders = { 'X-Token': 'sixteen-letters-' };
  const callbackUrl = await startCallbacks({ verify: headerToken('X-Token', callbackHeaders['X-Token']) });
  const sandbox = await startSandbox({ clock: 'manual', callbackUrl, callbackHeaders });
  await create(sandbox, { externalId: 'success-1' });
  await sandbox.advance(1_000);
  const page = await openConsole(sandbox);
  await page.getByText('Payload').click();
  await page.getByRole('button', { name: 'Send', exact: true }).click();
  await page.locator('#verdict').getByText('✓ Your app did not believe it.').waitFor();
  await page.getByLabel('With the headers of the sandbox').check();
  await page.getByRole('button', { name: 'Send', exact: true }).click();
  await page.locator('#verdict').getByText('– The sender had the headers of the sandbox.').waitFor();
  expect(await page.locator('#advice').innerText()).toContain('Handled before');
});

test('what the app believes because the service confirms it is not called a forgery', async () => {
  const sandbox = await startSandbox({ clock: 'manual' });
  const client = transferClient({ baseUrl: sandbox.baseUrl, ...sandbox.keys.valid });
  const callbackUrl = await startCallbacks({ confirm: confirmWith(client) });
  await create(sandbox, { externalId: 'success-1', callbackUrl });
  await sandbox.advance(1_000);
  const page = await openConsole(sandbox);
  await page.getByText('Payload').click();
  const payload = page.getByLabel('Payload');
  const send = () => page.getByRole('button', { name: 'Send', exact: true }).click();
  const text = await payload.inputValue();
  await payload.fill(text.replace('MTN', 'another'));
  await send();
  await page.locator('#verdict').getByText('◌ Your app acknowledged it, and it is true.').waitFor();
  await payload.fill(text.replace('15000', '9915000'));
  await send();
  await page.locator('#verdict').getByText('✓ Your app did not believe it.').waitFor();
});
