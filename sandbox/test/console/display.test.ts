import { createRequire } from 'node:module';
import { expect, test, vi } from 'vitest';
import { create, query, startMerchant, startSandbox } from '../service/support.js';
import { failingHandler, openConsole, rows, shows, skip, startCallbacks } from './support.js';

// What the page shows of all kinds of transfers, for many of them, and at every width.

test('a transfer of a merchant that fails has a hint, the response and the next attempt, until it is given up', async () => {
  const callbackUrl = await startCallbacks({ onSuccess: failingHandler });
  const sandbox = await startSandbox({ clock: 'manual', callbackUrl });
  const page = await openConsole(sandbox);
  await create(sandbox, { externalId: 'success-1' });
  await shows(page, 'in 1 s');
  await skip(page);
  await shows(page, 'Your handler threw. See the log of your app.');
  await shows(page, '"message":"The callback could not be handled."');
  await shows(page, 'in 30 s');
  for (const number of [2, 3, 4]) {
    await skip(page);
    await expect.poll(() => sandbox.attempts).toHaveLength(number);
  }
  await shows(page, '500, gave up after attempt 4');
  expect(await page.getByRole('button', { name: 'Skip to next' }).isDisabled()).toBe(true);
  expect(await rows(page)).toEqual([expect.stringContaining('✗ 500, gave up after attempt 4')]);
  await expect.poll(() => page.getByRole('status').innerText()).toMatch(/^success-1: .*got 500$/);
});

test('a transfer shows the request and the response of each attempt side by side, with headers, and what the merchant did', async () => {
  const callbackUrl = `${await startCallbacks()}/a?b=c`;
  const sandbox = await startSandbox({ clock: 'manual', callbackUrl, callbackHeaders: { 'X-Token': 'a' } });
  await create(sandbox, { externalId: 'duplicate-1', provider: 'Société' });
  await sandbox.advance(60_000);
  const page = await openConsole(sandbox);
  const attempts = page.locator('#timeline li:has(details)');
  expect(await attempts.locator('.what').allInnerTexts()).toEqual([
    expect.stringMatching(/^attempt 1 of 4\s+200\s+processed, \d+ ms$/),
    expect.stringMatching(/^attempt 2 of 4\s+200\s+duplicate, \d+ ms$/),
  ]);
  const [first] = sandbox.attempts;
  await attempts.first().getByText('Request and response').click();
  const [sent = '', received = ''] = await attempts.first().locator('pre').allInnerTexts();
  const [head = '', body = ''] = sent.split('\n\n');
  expect(head.split('\n')).toEqual([
    'POST /callbacks/a?b=c',
    `Host: ${new URL(callbackUrl).host}`,
    'X-Token: a',
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(String(first?.body))}`,
  ]);
  expect(JSON.parse(body)).toEqual(JSON.parse(String(first?.body)));
  expect(received).toMatch(/^200\ncontent-type: application\/json; charset=utf-8\n[^]*\n\n\{"outcome":"processed"\}$/);
  const boxes = await Promise.all([0, 1].map((at) => attempts.first().locator('pre').nth(at).boundingBox()));
  expect(boxes[0]?.y).toBe(boxes[1]?.y);
});

test('a transfer is as before if only a header of the response differs', async () => {
  const { url } = await startMerchant((_received, count, response) => {
    response.writeHead(500, { 'X-Count': String(count) }).end();
  });
  const sandbox = await startSandbox({ clock: 'manual', callbackUrl: url });
  await create(sandbox, { externalId: 'one' });
  await sandbox.advance(40_000);
  const page = await openConsole(sandbox);
  await shows(page, 'The same request and response as before.');
  await page.getByText('x-count: 1').waitFor();
  expect(await page.getByText('x-count: 2').count()).toBe(0);
});

test('the timeline shows an attempt above the query that its handler makes, and keeps the elements that are shown already', async () => {
  const sandbox = await startSandbox({ speed: 1_000 });
  const page = await openConsole(sandbox);
  const { url } = await startMerchant(async (_received, _count, response) => {
    // 20 s of the sandbox, so that the query is later than the attempt.
    await new Promise((resolve) => setTimeout(resolve, 20));
    await query(sandbox, 'one');
    await shows(page, 'app queried');
    await page.evaluate("document.querySelector('#timeline li').id = 'kept'");
    response.end();
  });
  await create(sandbox, { externalId: 'one', callbackUrl: url });
  await shows(page, 'acknowledged');
  const names = await page.locator('#timeline .what span:first-child').allInnerTexts();
  expect(names).toEqual(['created', 'final', 'attempt 1 of 4', 'app queried']);
  expect(await page.locator('#timeline #kept').innerText()).toContain('created');
});

test('a transfer in each scenario is in the list as it should be', async () => {
  const { url } = await startMerchant();
  const sandbox = await startSandbox({ clock: 'manual', callbackUrl: url });
  const page = await openConsole(sandbox);
  for (const name of ['no-callback', 'late-callback', 'duplicate', 'burst', 'lost-attempts', 'malformed']) {
    await create(sandbox, { externalId: `${name}-1` });
  }
  await sandbox.advance(1_000);
  await create(sandbox, { externalId: 'success-2' });
  await expect
    .poll(async () => (await rows(page)).map((row) => row.replaceAll(/\s+/g, ' ').trim()))
    .toEqual([
      'success-2 pending ◌ final at 10:30:02 in 1 s',
      'malformed-1 SUCCESS ✗ acknowledged wrongly, attempt 1',
      'lost-attempts-1 SUCCESS ◌ lost on the way, attempt 2 at 10:30:31 in 30 s',
      'burst-1 SUCCESS ✓ acknowledged, copy 10 of 10',
      'duplicate-1 SUCCESS ✓ acknowledged, attempt 2 at 10:30:31 in 30 s',
      'late-callback-1 SUCCESS ◌ attempt 1 at 10:40:01 in 10 min',
      'no-callback-1 SUCCESS – no callback is sent',
    ]);
  await page.getByRole('link', { name: 'burst-1' }).click();
  await shows(page, 'copy 10 of 10');
  await page.getByRole('link', { name: 'no-callback-1' }).click();
  await shows(page, 'A query still shows the final status');
  await query(sandbox, 'no-callback-1');
  await page.locator('#rows').getByText('no callback is sent, then queried').waitFor();
  await expect.poll(() => page.getByText('A query still shows').count()).toBe(0);
});

test('a transfer with a long or blank name, long headers and a long address takes little room, and can be chosen', async () => {
  const { url } = await startMerchant((_received, _count, response) => {
    response.writeHead(500, { 'X-Long': 'x'.repeat(6_000) }).end();
  });
  const callbackUrl = `${url}/${'token-'.repeat(20)}end`;
  const sandbox = await startSandbox({ clock: 'manual', callbackUrl });
  await create(sandbox, { externalId: 'long-'.repeat(60) });
  await create(sandbox, { externalId: ' ' });
  await sandbox.advance(1_000);
  await create(sandbox, { externalId: 'last' });
  const page = await openConsole(sandbox);
  await page.getByRole('link', { name: '" "' }).click();
  await page.locator('#name').getByText('" "').waitFor();
  await page.getByRole('link', { name: 'long-' }).click();
  await page.locator('#name').getByText('long-').waitFor();
  for (const [part, most] of [
    ['#rows tr:has(a[aria-current])', 130],
    ['#transfer h2', 110],
  ] as const) {
    expect((await page.locator(part).boundingBox())?.height).toBeLessThan(most);
  }
  expect((await page.locator('#timeline pre').nth(1).innerText()).length).toBeLessThan(600);
  await page.getByText('Payload').click();
  await vi.waitFor(async () => {
    const hidden = 'to.scrollWidth - to.clientWidth';
    expect(await page.evaluate(`[${hidden} > 0, Math.abs(${hidden} - to.scrollLeft) < 2]`)).toEqual([true, true]);
  });
});

test('a transfer that the sandbox does not have is said to be missing', async () => {
  const sandbox = await startSandbox();
  const page = await openConsole(sandbox);
  await page.goto(`${String(sandbox.consoleUrl)}#/transfer/unknown`);
  await page.getByText('No such transfer').waitFor();
});

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

test('the list counts all transfers, shows the newest 200 and follows the newest, whichever of the others change', async () => {
  const { url } = await startMerchant();
  const sandbox = await startSandbox({ clock: 'manual', callbackUrl: url });
  for (let made = 1; made <= 20; made += 1) await create(sandbox, { externalId: `old-${made}` });
  await sandbox.advance(500);
  for (let made = 1; made <= 199; made += 1) await create(sandbox, { externalId: `t-${made}` });
  const page = await openConsole(sandbox);
  await create(sandbox, { externalId: 't-200' });
  await page.getByRole('heading', { name: 'Transfers (220)' }).waitFor();
  await sandbox.advance(500);
  await create(sandbox, { externalId: 't-201' });
  await page.locator('#name').getByText('t-201').waitFor();
  await page.getByRole('heading', { name: 'Transfers (221)' }).waitFor();
  const shown = await rows(page);
  expect(shown).toHaveLength(200);
  expect([shown[0], shown.at(-1)].map((row) => row?.split(/\s/)[0])).toEqual(['t-201', 't-2']);
  await page.getByText('The newest 200. Search finds the others.').waitFor();
  await page.getByLabel('Search all transfers').fill('OLD-1');
  await page.getByRole('heading', { name: 'Transfers (11 of 221)' }).waitFor();
  await page.getByRole('link', { name: 'old-13' }).click();
  await page.locator('#name').getByText('old-13').waitFor();
});

test('letters in a field are letters, and a search that finds nothing keeps what is shown', async () => {
  const { url } = await startMerchant();
  const sandbox = await startSandbox({ clock: 'manual', callbackUrl: url });
  for (const externalId of ['nrs-1', 'other-2']) await create(sandbox, { externalId });
  const page = await openConsole(sandbox);
  await page.locator('#find').pressSequentially('nrs');
  expect(await page.locator('#find').inputValue()).toBe('nrs');
  await page.getByRole('heading', { name: 'Transfers (1 of 2)' }).waitFor();
  expect(await rows(page)).toEqual([expect.stringContaining('nrs-1')]);
  await page.locator('#find').fill('nothing like it');
  await page.getByText('No transfer matches.').waitFor();
  expect(await page.locator('#name').innerText()).toBe('other-2');
  expect(sandbox.attempts).toEqual([]);
});

test('the list keeps the focus when the row with the focus leaves it', async () => {
  const { url } = await startMerchant();
  const sandbox = await startSandbox({ clock: 'manual', callbackUrl: url });
  for (const externalId of ['one', 'lost-attempts-2']) await create(sandbox, { externalId });
  const page = await openConsole(sandbox);
  await page.getByLabel('Outcome', { exact: true }).selectOption('waiting');
  await page.getByRole('link', { name: 'one' }).focus();
  await page.keyboard.press('s');
  await page.getByRole('heading', { name: 'Transfers (1 of 2)' }).waitFor();
  await page.keyboard.press('ArrowDown');
  expect(await page.evaluate('document.activeElement.textContent')).toBe('lost-attempts-2');
});

const axe = createRequire(import.meta.url).resolve('axe-core/axe.min.js');

test.each([
  ['light', 1280],
  ['dark', 320],
] as const)('axe-core finds nothing: %s, %d px wide', async (colorScheme, width) => {
  const sandbox = await startSandbox({ clock: 'manual', callbackUrl: await startCallbacks() });
  for (const externalId of ['flip-1', 'lost-attempts-2']) await create(sandbox, { externalId });
  await sandbox.advance(12_000);
  // The policy would bar the injection of axe-core itself.
  const page = await openConsole(sandbox, {
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
  await page.getByText('Payload').click();
  await page.getByRole('button', { name: 'Send', exact: true }).click();
  await page.locator('#refusal').waitFor();
  await check();
  await page.getByRole('link', { name: 'New' }).click();
  await page.getByLabel('externalId').waitFor();
  await check();
});

test('the time between two events is the one that was counted down', async () => {
  const sandbox = await startSandbox({ speed: 1, callbackUrl: (await startMerchant([500])).url });
  const page = await openConsole(sandbox);
  await create(sandbox, { externalId: 'one' });
  await shows(page, 'in 30 s');
  await page.locator('#timeline li').last().getByText('+30 s').waitFor();
});

test('a narrow page shows the list or one transfer, with a way back', async () => {
  const sandbox = await startSandbox({ clock: 'manual' });
  await create(sandbox, { externalId: 'one' });
  const page = await openConsole(sandbox, { viewport: { width: 400, height: 700 } });
  expect(await page.locator('#detail').isVisible()).toBe(false);
  await page.getByRole('link', { name: 'one' }).click();
  await page.locator('#name').getByText('one').waitFor();
  expect(await page.locator('#list').isVisible()).toBe(false);
  expect(await page.evaluate('document.activeElement.tagName')).toBe('H2');
  await page.getByRole('link', { name: 'Transfers' }).click();
  await page.locator('#list').waitFor();
});
