import { headerToken } from 'transfer-callbacks';
import { expect, test } from 'vitest';
import { create, startSandbox } from '../service/support.js';
import { openConsole, startCallbacks } from './support.js';

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
