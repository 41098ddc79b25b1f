import { expect, test } from 'vitest';
import { create, startSandbox } from '../service/support.js';
import { openConsole, startCallbacks } from './support.js';

// What the page says of the app: whether it did right.

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
